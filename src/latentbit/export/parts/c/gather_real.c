/* The values that one output sees, in the order of the weights; taps outside the map are 0. */
static void gather_real(const struct layer *l, const struct memory *m, int oy, int ox, int channel, int n, float *window)
{
    const real_t *map = m->maps + l->in;
    for (int ky = 0; ky < l->kernel_h; ky++) {
        const int y = oy * l->stride_h - l->pad_top + ky * l->dilation_h;
        for (int kx = 0; kx < l->kernel_w; kx++, window += n) {
            const int x = ox * l->stride_w - l->pad_left + kx * l->dilation_w;
            if (y < 0 || y >= l->in_h || x < 0 || x >= l->in_w) {
                for (int c = 0; c < n; c++) {
                    window[c] = 0.0f;
                }
            } else {
                const real_t *from = map + (y * l->in_w + x) * l->in_channels + channel;
                for (int c = 0; c < n; c++) {
                    window[c] = load(from[c]);
                }
            }
        }
    }
}
