/* The same for signs. */
static void flatten_bits(const struct layer *l, const struct memory *m)
{
    const int pixels = l->in_h * l->in_w;
    const int pixel_words = (l->in_channels + 31) / 32;
    uint32_t *bits = m->bits + l->bits;
    int at = 0;
    for (int i = 0; i < (l->channels + 31) / 32; i++) {
        bits[i] = 0;
    }
    for (int c = 0; c < l->in_channels; c++) {
        for (int p = 0; p < pixels; p++, at++) {
            const uint32_t word = m->bits[l->in + p * pixel_words + (c >> 5)];
            bits[at >> 5] |= ((word >> (c & 31)) & 1u) << (at & 31);
        }
    }
}
