/* The largest value of every window; what is outside the map does not take part. */
static void max_pool(const struct layer *l, const struct memory *m)
{
    float *y = m->real + l->scratch;
    for (int oy = 0; oy < l->out_h; oy++) {
        const int top = oy * l->stride_h - l->pad_top;
        const struct taps down = taps_inside(top, 1, l->kernel_h, l->in_h);
        for (int ox = 0; ox < l->out_w; ox++) {
            const int left = ox * l->stride_w - l->pad_left;
            const struct taps across = taps_inside(left, 1, l->kernel_w, l->in_w);
            for (int ky = down.first; ky < down.end; ky++) {
                for (int kx = across.first; kx < across.end; kx++) {
                    const real_t *x = m->maps + l->in + ((top + ky) * l->in_w + left + kx) * l->in_channels;
                    const int begins = ky == down.first && kx == across.first;
                    for (int c = 0; c < l->channels; c++) {
                        const float value = load(x[c]);
                        if (begins || value > y[c]) {
                            y[c] = value;
                        }
                    }
                }
            }
            l->finish(l, m, y, oy * l->out_w + ox);
        }
    }
}
