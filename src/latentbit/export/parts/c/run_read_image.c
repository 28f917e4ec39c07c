/* The image as a map of real values, channels innermost. */
static void read_image(const struct layer *l, const struct memory *m)
{
    float *y = m->real + l->scratch;
    for (int p = 0; p < l->out_h * l->out_w; p++) {
        for (int c = 0; c < l->channels; c++) {
            y[c] = pixel(m, c, p);
        }
        l->finish(l, m, y, p);
    }
}
