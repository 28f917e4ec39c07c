/*
 * Maps of real values are kept in 16 bit: sign, 5 bits of exponent, 10 of fraction, as in IEEE 754. Arithmetic stays
 * that of floats.
 */
union float_bits {
    float value;
    uint32_t bits;
};

static inline float load(real_t stored)
{
    const uint32_t magnitude = stored & 0x7fffu;
    union float_bits x;
    x.bits = (stored & 0x8000u) << 16;
    if (magnitude != 0) {
        x.bits |= (magnitude << 13) + 0x38000000u; /* 127 - 15 more in the exponent */
    }
    return x.value;
}

/* To the nearest, ties to even. Beyond 65504 it is 65504; below 2^-14 it is 0, so that load has one case less. */
static inline real_t store(float value)
{
    union float_bits x;
    x.value = value;
    const uint32_t sign = (x.bits >> 16) & 0x8000u;
    uint32_t magnitude = x.bits & 0x7fffffffu;
    magnitude += 0xfffu + ((magnitude >> 13) & 1u);
    if (magnitude < 0x38800000u) {
        return (real_t)sign;
    }
    if (magnitude > 0x477fffffu) {
        magnitude = 0x477fe000u;
    }
    return (real_t)(sign | ((magnitude - 0x38000000u) >> 13));
}
