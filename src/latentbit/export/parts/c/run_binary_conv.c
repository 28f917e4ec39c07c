/* Signs in, real values out: scale * dot + bias. */
static void binary_conv(const struct layer *l, const struct memory *m)
{
    const int per_group = l->channels / l->groups;
    uint32_t *row = m->bits + l->scratch;
    int32_t *dots = m->dots + l->scratch + 2 * l->row_words;
    float *y = m->real + l->scratch + 2 * l->row_words + per_group;
    for (int oy = 0; oy < l->out_h; oy++) {
        for (int ox = 0; ox < l->out_w; ox++) {
            for (int group = 0; group < l->groups; group++) {
                const int first = group * per_group;
                l->count(l, m->bits + l->in, oy, ox, group, row, dots);
                for (int c = 0; c < per_group; c++) {
                    y[first + c] = (float)dots[c] * l->scale[first + c] + l->bias[first + c];
                }
            }
            l->finish(l, m, y, oy * l->out_w + ox);
        }
    }
}
