/* Maps of real values are kept as they are. */
static inline float load(real_t stored)
{
    return stored;
}

static inline real_t store(float value)
{
    return value;
}
