/*
 * Channels fill only parts of words: the bits that one output sees are first put together without gaps. `row` has
 * room for them and for a mask.
 */
static void count_in_bits(const struct layer *l, const uint32_t *map, int oy, int ox, int group, uint32_t *row,
                          int32_t *dots)
{
    const int n = l->in_channels / l->groups;
    const int channels = l->channels / l->groups;
    const int y = oy * l->stride_h - l->pad_top;
    const int x = ox * l->stride_w - l->pad_left;
    const struct taps down = taps_inside(y, l->dilation_h, l->kernel_h, l->in_h);
    const struct taps across = taps_inside(x, l->dilation_w, l->kernel_w, l->in_w);
    const int taps = (down.end - down.first) * (across.end - across.first);
    const int32_t inside = taps * n;
    const uint32_t *weights = l->weights + group * channels * l->row_words;
    for (int c = 0; c < channels; c++) {
        dots[c] = inside;
    }
    gather_bits(l, map, down, across, y, x, group * n, row);
    if (taps == l->kernel_h * l->kernel_w) {
        count_rows(row, weights, l->row_words, l->row_words, channels, dots);
    } else {
        uint32_t *mask = row + l->row_words;
        mask_taps(l, down, across, mask);
        count_rows_inside(row, mask, weights, l->row_words, l->row_words, channels, dots);
    }
}
