/* The taps from `first` up to `end` of a kernel that starts at `start` lie inside a map of `size`. */
struct taps {
    int first;
    int end;
};

static struct taps taps_inside(int start, int dilation, int kernel, int size)
{
    struct taps taps = {0, kernel};
    while (taps.first < kernel && start + taps.first * dilation < 0) {
        taps.first++;
    }
    while (taps.end > taps.first && start + (taps.end - 1) * dilation >= size) {
        taps.end--;
    }
    return taps;
}
