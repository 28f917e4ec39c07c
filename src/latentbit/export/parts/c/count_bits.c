/* Set bits of each nibble of a word. */
static inline uint32_t count_nibbles(uint32_t word)
{
    word -= (word >> 1) & 0x55555555u;
    return (word & 0x33333333u) + ((word >> 2) & 0x33333333u);
}

/* Counts of nibbles to counts of bytes. */
static inline uint32_t pair_nibbles(uint32_t counts)
{
    return (counts & 0x0f0f0f0fu) + ((counts >> 4) & 0x0f0f0f0fu);
}

/* Set bits of each byte of one, two or three words together. */
static inline uint32_t count_bytes1(uint32_t a)
{
    return pair_nibbles(count_nibbles(a));
}

static inline uint32_t count_bytes2(uint32_t a, uint32_t b)
{
    return pair_nibbles(count_nibbles(a) + count_nibbles(b));
}

/* A full adder turns three bits into one that is worth 1 and one that is worth 2; a nibble holds 4 + 2 * 4 at most. */
static inline uint32_t count_bytes3(uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t differ = a ^ b;
    const uint32_t ones = differ ^ c;
    const uint32_t twos = (a & b) | (differ & c);
    return pair_nibbles(count_nibbles(ones) + 2u * count_nibbles(twos));
}

/* The four bytes of a word, added. */
static inline int32_t sum_bytes(uint32_t bytes)
{
    const uint32_t halves = (bytes & 0x00ff00ffu) + ((bytes >> 8) & 0x00ff00ffu);
    return (int32_t)((halves + (halves >> 16)) & 0xffffu);
}
