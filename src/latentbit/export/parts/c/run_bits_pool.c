/* The greatest sign of every window: -1, a set bit, only where all are. */
static void bits_pool(const struct layer *l, const struct memory *m)
{
    const int pixel_words = (l->in_channels + 31) / 32;
    uint32_t *bits = m->bits + l->bits;
    for (int oy = 0; oy < l->out_h; oy++) {
        const int top = oy * l->stride_h - l->pad_top;
        const struct taps down = taps_inside(top, 1, l->kernel_h, l->in_h);
        for (int ox = 0; ox < l->out_w; ox++) {
            const int left = ox * l->stride_w - l->pad_left;
            const struct taps across = taps_inside(left, 1, l->kernel_w, l->in_w);
            for (int i = 0; i < pixel_words; i++) {
                uint32_t all = ~0u;
                for (int ky = down.first; ky < down.end; ky++) {
                    for (int kx = across.first; kx < across.end; kx++) {
                        all &= m->bits[l->in + ((top + ky) * l->in_w + left + kx) * pixel_words + i];
                    }
                }
                *bits++ = all;
            }
        }
    }
}
