/* Layers that work on every value by itself. */
static void each_pixel(const struct layer *l, const struct memory *m)
{
    const real_t *x = m->maps + l->in;
    float *y = m->real + l->scratch;
    for (int p = 0; p < l->out_h * l->out_w; p++, x += l->in_channels) {
        for (int c = 0; c < l->in_channels; c++) {
            y[c] = load(x[c]);
        }
        l->finish(l, m, y, p);
    }
}
