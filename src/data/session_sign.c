/*
 * session_sign.c: what the sessions of the admin page need: signatures with a key derived from the
 * pepper (api_key_hash.c), and random tokens. What is signed is decided in src/http.
 */
#include "base/parse.h"
#include "data/data_internal.h"

#define TOKEN_BYTES 32

void
il__data_sign(struct il__data *d, const char *text, size_t n_bytes, char ret[DATA_SIGNATURE_BYTES])
{
    unsigned char hash[DATA_HASH_BYTES];

    _Static_assert(DATA_SIGNATURE_BYTES == DATA_HEX_BYTES(DATA_HASH_BYTES), "in hex digits");
    CHECK(d->has_pepper);
    il__data_hmac(&d->session_keyed, text, n_bytes, hash);
    il__hex_print(hash, sizeof hash, ret);
}

bool
il__data_is_signed(struct il__data *d, const char *text, size_t n_bytes,
                   const char signature[DATA_SIGNATURE_BYTES])
{
    char right[DATA_SIGNATURE_BYTES];

    il__data_sign(d, text, n_bytes, right);
    bool is_right = il__sodium->sodium_memcmp(right, signature, sizeof right) == 0;
    il__sodium->sodium_memzero(right, sizeof right);
    return is_right;
}

il_status
il__data_token(char ret[DATA_TOKEN_BYTES], il_error *reterr)
{
    unsigned char bytes[TOKEN_BYTES];
    il_status     st = il__data_sodium_load(reterr);

    if (st != IL_OK)
        return st;
    il__sodium->randombytes_buf(bytes, sizeof bytes);
    (void)il__sodium->sodium_bin2base64(ret, DATA_TOKEN_BYTES, bytes, sizeof bytes,
                                        sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    CHECK(strlen(ret) == DATA_TOKEN_BYTES - 1);
    il__sodium->sodium_memzero(bytes, sizeof bytes);
    return IL_OK;
}
