/*
 * Sums of products, one after the other as they stand in the window, so that every machine rounds alike. Weights of
 * four channels alternate; those of the last one to three channels follow by themselves.
 */
static void dot_products(const float *weight, const float *bias, const float *window, int n, int channels,
                         float *y)
{
    int c = 0;
    for (; c + 4 <= channels; c += 4) {
        float sum0 = bias[c];
        float sum1 = bias[c + 1];
        float sum2 = bias[c + 2];
        float sum3 = bias[c + 3];
        for (int i = 0; i < n; i++, weight += 4) {
            const float x = window[i];
            sum0 += x * weight[0];
            sum1 += x * weight[1];
            sum2 += x * weight[2];
            sum3 += x * weight[3];
        }
        y[c] = sum0;
        y[c + 1] = sum1;
        y[c + 2] = sum2;
        y[c + 3] = sum3;
    }
    for (; c < channels; c++) {
        float sum = bias[c];
        for (int i = 0; i < n; i++, weight++) {
            sum += window[i] * *weight;
        }
        y[c] = sum;
    }
}

/* A real convolution; a linear layer is one of a single pixel. */
static void conv(const struct layer *l, const struct memory *m)
{
    const int n = l->in_channels / l->groups;
    const int per_group = l->channels / l->groups;
    const int taps = l->kernel_h * l->kernel_w * n;
    float *window = m->real + l->scratch;
    float *y = window + taps;
    for (int oy = 0; oy < l->out_h; oy++) {
        for (int ox = 0; ox < l->out_w; ox++) {
            for (int group = 0; group < l->groups; group++) {
                const int first = group * per_group;
                l->gather(l, m, oy, ox, group * n, n, window);
                dot_products(l->weight + first * taps, l->bias + first, window, taps, per_group, y + first);
            }
            l->finish(l, m, y, oy * l->out_w + ox);
        }
    }
}
