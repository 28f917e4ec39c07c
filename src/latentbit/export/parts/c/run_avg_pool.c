/* The mean of every window: of the taps inside the map, or of those inside its padding too. */
static void avg_pool(const struct layer *l, const struct memory *m)
{
    float *y = m->real + l->scratch;
    for (int oy = 0; oy < l->out_h; oy++) {
        const int top = oy * l->stride_h - l->pad_top;
        const struct taps down = taps_inside(top, 1, l->kernel_h, l->in_h);
        const struct taps padded_down = taps_inside(top + l->pad_top, 1, l->kernel_h, l->padded_h);
        for (int ox = 0; ox < l->out_w; ox++) {
            const int left = ox * l->stride_w - l->pad_left;
            const struct taps across = taps_inside(left, 1, l->kernel_w, l->in_w);
            const struct taps padded_across = taps_inside(left + l->pad_left, 1, l->kernel_w, l->padded_w);
            const int inside = (down.end - down.first) * (across.end - across.first);
            const int padded = (padded_down.end - padded_down.first) * (padded_across.end - padded_across.first);
            const float share = 1.0f / (float)(l->padded_h > 0 ? padded : inside);
            for (int c = 0; c < l->channels; c++) {
                y[c] = 0.0f;
            }
            for (int ky = down.first; ky < down.end; ky++) {
                for (int kx = across.first; kx < across.end; kx++) {
                    const real_t *x = m->maps + l->in + ((top + ky) * l->in_w + left + kx) * l->in_channels;
                    for (int c = 0; c < l->channels; c++) {
                        y[c] += load(x[c]);
                    }
                }
            }
            for (int c = 0; c < l->channels; c++) {
                y[c] *= share;
            }
            l->finish(l, m, y, oy * l->out_w + ox);
        }
    }
}
