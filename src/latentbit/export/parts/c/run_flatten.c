/* A map as a vector: all of the first channel, then all of the second. */
static void flatten(const struct layer *l, const struct memory *m)
{
    const int pixels = l->in_h * l->in_w;
    real_t *y = m->maps + l->real;
    for (int c = 0; c < l->in_channels; c++) {
        for (int p = 0; p < pixels; p++) {
            *y++ = m->maps[l->in + p * l->in_channels + c];
        }
    }
}
