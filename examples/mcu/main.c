/*
 * Reads images from the host over semihosting, classifies them, and prints class and instructions of each.
 *
 * images.bin: for every image one byte, its class, then NET_INPUTS bytes of pixels.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "net.h"

/*
 * A clock of CLOCK_HZ, which the Makefile knows. Under qemu -icount shift=0 an instruction takes a nanosecond, so that
 * time tells instructions; on a chip the same code counts cycles.
 */
#if defined(__arm__)
static uint32_t ticks(void)
{
    volatile uint32_t *const systick = (volatile uint32_t *)0xE000E010u;
    if ((systick[0] & 1u) == 0) {
        systick[1] = 0xffffffu;
        systick[2] = 0;
        systick[0] = 5;
        while (systick[2] == 0) {
        }
    }
    return 0xffffffu - systick[2];
}
#else
static uint32_t ticks(void)
{
    uint32_t count;
    __asm__ volatile(".option arch, +zicsr\n\tcsrr %0, mcycle" : "=r"(count));
    return count;
}
#endif

int main(void)
{
    static uint8_t image[NET_INPUTS];
    static float logits[NET_OUTPUTS];
    int n = 0;
    int right = 0;
    FILE *file = fopen("images.bin", "rb");
    if (file == NULL) {
        printf("images.bin is not there: make images.bin\n");
        exit(1);
    }
    for (;;) {
        const int expected = getc(file);
        if (expected < 0 || fread(image, 1, NET_INPUTS, file) != NET_INPUTS) {
            break;
        }
        const uint32_t before = ticks();
        net_run(image, logits);
        const uint64_t taken = (uint64_t)(ticks() - before) * 1000000000u / CLOCK_HZ;
        const int found = net_class(logits);
        printf("%s, expected %s, %lu instructions\n", net_classes[found], net_classes[expected], (unsigned long)taken);
        n++;
        right += found == expected;
    }
    printf("%d of %d right, %d bytes of RAM\n", right, n, NET_ARENA_BYTES);
    exit(0); /* a return would wait forever: nobody called main */
}
