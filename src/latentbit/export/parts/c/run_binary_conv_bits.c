/* Signs in, signs out: -1 where dot < threshold, the other way round where a flip is set. */
static void binary_conv_bits(const struct layer *l, const struct memory *m)
{
    const int per_group = l->channels / l->groups;
    uint32_t *row = m->bits + l->scratch;
    int32_t *dots = m->dots + l->scratch + 2 * l->row_words;
    uint32_t *bits = m->bits + l->bits;
    for (int oy = 0; oy < l->out_h; oy++) {
        for (int ox = 0; ox < l->out_w; ox++) {
            for (int i = 0; i < (l->channels + 31) / 32; i++) {
                bits[i] = l->flip[i];
            }
            for (int group = 0; group < l->groups; group++) {
                const int first = group * per_group;
                l->count(l, m->bits + l->in, oy, ox, group, row, dots);
                for (int c = first; c < first + per_group; c++) {
                    if (dots[c - first] < l->dot_threshold[c]) {
                        bits[c >> 5] ^= 1u << (c & 31);
                    }
                }
            }
            bits += (l->channels + 31) / 32;
        }
    }
}
