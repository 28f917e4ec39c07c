/* One of the maps that are put side by side: its channels go to those from first_channel on. */
static void concat_part(const struct layer *l, const struct memory *m)
{
    const real_t *x = m->maps + l->in;
    real_t *y = m->maps + l->real + l->first_channel;
    for (int p = 0; p < l->out_h * l->out_w; p++, x += l->in_channels, y += l->channels) {
        for (int c = 0; c < l->in_channels; c++) {
            y[c] = x[c];
        }
    }
}
