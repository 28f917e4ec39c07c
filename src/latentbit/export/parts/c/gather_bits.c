/*
 * Copies n bits, from bit `first` of `from` on, to bit `at` of a row. What follows them in the last word that is
 * touched becomes 0.
 */
static void append_bits(uint32_t *row, int at, const uint32_t *from, int first, int n)
{
    while (n > 0) {
        const int left = 32 - (first & 31);
        const int take = n < left ? n : left;
        const int shift = at & 31;
        uint32_t value = from[first >> 5] >> (first & 31);
        if (take < 32) {
            value &= (1u << take) - 1u;
        }
        if (shift == 0) {
            row[at >> 5] = value;
        } else {
            row[at >> 5] |= value << shift;
            if (shift + take > 32) {
                row[(at >> 5) + 1] = value >> (32 - shift);
            }
        }
        at += take;
        first += take;
        n -= take;
    }
}

/*
 * The signs that one output sees, as one row of bits in the order of the weights: kernel rows, columns, channels.
 * Bits of taps outside the map mean nothing.
 */
static void gather_bits(const struct layer *l, const uint32_t *map, struct taps down, struct taps across, int y, int x,
                        int channel, uint32_t *row)
{
    const int n = l->in_channels / l->groups;
    const int pixel_words = (l->in_channels + 31) / 32;
    for (int ky = down.first; ky < down.end; ky++) {
        const uint32_t *from = map + ((y + ky * l->dilation_h) * l->in_w + x + across.first * l->dilation_w) * pixel_words;
        int at = (ky * l->kernel_w + across.first) * n;
        if (l->groups == 1 && n < 32) { /* a word per tap, filled in part */
            uint32_t word = row[at >> 5] & ~(~0u << (at & 31));
            for (int kx = across.first; kx < across.end; kx++, from += l->dilation_w * pixel_words) {
                const int shift = at & 31;
                word |= *from << shift;
                at += n;
                if (shift + n >= 32) {
                    row[(at >> 5) - 1] = word;
                    word = shift + n > 32 ? *from >> (32 - shift) : 0;
                }
            }
            row[at >> 5] = word;
        } else {
            row[at >> 5] &= ~(~0u << (at & 31));
            for (int kx = across.first; kx < across.end; kx++, from += l->dilation_w * pixel_words) {
                append_bits(row, at, from, channel, n);
                at += n;
            }
        }
    }
}

/* A mask of the taps inside the map, in the order of the row. */
static void mask_taps(const struct layer *l, struct taps down, struct taps across, uint32_t *mask)
{
    const int n = l->in_channels / l->groups;
    for (int i = 0; i < l->row_words; i++) {
        mask[i] = 0;
    }
    for (int ky = down.first; ky < down.end; ky++) {
        const int end = (ky * l->kernel_w + across.end) * n;
        int at = (ky * l->kernel_w + across.first) * n;
        while (at < end) {
            const int left = 32 - (at & 31);
            const int take = end - at < left ? end - at : left;
            mask[at >> 5] |= (~0u >> (32 - take)) << (at & 31);
            at += take;
        }
    }
}
