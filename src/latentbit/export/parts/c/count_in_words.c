/*
 * Channels fill whole words: what a kernel row sees lies in the map as one run of words, or as one run per tap where
 * there are groups or gaps between the taps. Taps outside the map are not visited.
 */
static void count_in_words(const struct layer *l, const uint32_t *map, int oy, int ox, int group, uint32_t *row,
                           int32_t *dots)
{
    const int tap_words = l->in_channels / l->groups / 32;
    const int pixel_words = l->in_channels / 32;
    const int channels = l->channels / l->groups;
    const int y = oy * l->stride_h - l->pad_top;
    const int x = ox * l->stride_w - l->pad_left;
    const struct taps down = taps_inside(y, l->dilation_h, l->kernel_h, l->in_h);
    const struct taps across = taps_inside(x, l->dilation_w, l->kernel_w, l->in_w);
    const int taps = across.end - across.first;
    const int runs = l->groups == 1 && l->dilation_w == 1 ? 1 : taps;
    const int run_words = taps * tap_words / (runs > 0 ? runs : 1);
    const int32_t inside = (down.end - down.first) * taps * tap_words * 32;
    (void)row;
    for (int c = 0; c < channels; c++) {
        dots[c] = inside;
    }
    for (int ky = down.first; ky < down.end; ky++) {
        const int pixel = (y + ky * l->dilation_h) * l->in_w + x + across.first * l->dilation_w;
        const uint32_t *from = map + pixel * pixel_words + group * tap_words;
        const uint32_t *w = l->weights + group * channels * l->row_words + (ky * l->kernel_w + across.first) * tap_words;
        for (int run = 0; run < runs; run++) {
            count_rows(from, w, run_words, l->row_words, channels, dots);
            from += l->dilation_w * pixel_words;
            w += run_words;
        }
    }
}
