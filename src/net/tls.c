/* SPDX-License-Identifier: MIT */
/*
 * tls.c - OpenSSL, with the five things that its defaults leave out.
 *
 * It verifies: the chain against the given or the system's certificates, and
 * the name or address that the URL says, which has to be in the certificate's
 * subjectAltName; the common name does not count. It never asks: OpenSSL would
 * read the password of a key from the terminal. It never raises SIGPIPE and is no
 * point at which a thread can be cancelled: bytes pass through a BIO of our own
 * that uses MSG_NOSIGNAL. It explains: the reason a certificate was refused is
 * what the user reads. And it is loaded when TLS is first used, not before:
 * linked, it would cost every program that locks a file two milliseconds before
 * main().
 *
 * Failure: what concerns certificates is HF_EAUTH, which is not tried again by
 * itself; everything else is a connection that broke.
 */
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/dynlib.h"
#include "net/stream.h"

struct hf__tls_context {
    SSL_CTX *ssl;
    BIO_METHOD *method;
};

struct hf__tls {
    SSL *ssl;
    int fd;
    bool failed; /* nothing may be sent any more */
    int saved_errno;
    unsigned long reason; /* OpenSSL's, of the last failure */
};

/* ---- the library -------------------------------------------------------- */

#define FROM_SSL(X)                                                            \
    X(SSL_CTX_new)                                                             \
    X(SSL_CTX_free)                                                            \
    X(SSL_CTX_ctrl)                                                            \
    X(SSL_CTX_set_verify)                                                      \
    X(SSL_CTX_set_default_verify_paths)                                        \
    X(SSL_CTX_load_verify_locations)                                           \
    X(SSL_CTX_use_certificate_chain_file)                                      \
    X(SSL_CTX_use_PrivateKey_file)                                             \
    X(SSL_CTX_check_private_key)                                               \
    X(SSL_CTX_set_alpn_protos)                                                 \
    X(SSL_CTX_set_default_passwd_cb)                                           \
    X(SSL_CTX_set_default_passwd_cb_userdata)                                  \
    X(TLS_client_method)                                                       \
    X(SSL_new)                                                                 \
    X(SSL_free)                                                                \
    X(SSL_ctrl)                                                                \
    X(SSL_set1_host)                                                           \
    X(SSL_set_hostflags)                                                       \
    X(SSL_get0_param)                                                          \
    X(SSL_set_bio)                                                             \
    X(SSL_set_connect_state)                                                   \
    X(SSL_get_error)                                                           \
    X(SSL_do_handshake)                                                        \
    X(SSL_read)                                                                \
    X(SSL_write)                                                               \
    X(SSL_pending)                                                             \
    X(SSL_shutdown)                                                            \
    X(SSL_get_verify_result)
#define FROM_CRYPTO(X)                                                         \
    X(BIO_meth_new)                                                            \
    X(BIO_meth_free)                                                           \
    X(BIO_meth_set_read)                                                       \
    X(BIO_meth_set_write)                                                      \
    X(BIO_meth_set_ctrl)                                                       \
    X(BIO_get_new_index)                                                       \
    X(BIO_new)                                                                 \
    X(BIO_free)                                                                \
    X(BIO_get_data)                                                            \
    X(BIO_set_data)                                                            \
    X(BIO_set_init)                                                            \
    X(BIO_set_flags)                                                           \
    X(BIO_clear_flags)                                                         \
    X(ERR_peek_last_error)                                                     \
    X(ERR_reason_error_string)                                                 \
    X(ERR_clear_error)                                                         \
    X(X509_VERIFY_PARAM_set1_ip_asc)                                           \
    X(X509_verify_cert_error_string)

static struct {
    struct {
        FROM_SSL(HF__DYNLIB_FIELD)
    } ssl;
    struct {
        FROM_CRYPTO(HF__DYNLIB_FIELD)
    } crypto;
} lib;
HF__DYNLIB_NOTE(ssl, "tls", "recommended", "\"libssl.so.3\",\"libssl.so.4\"");
HF__DYNLIB_NOTE(crypto, "tls", "recommended",
                "\"libcrypto.so.3\",\"libcrypto.so.4\"");
static pthread_once_t lib_once = PTHREAD_ONCE_INIT;
static bool lib_there;

/* The version that we were compiled for comes first; the functions above are
 * the same in the others. */
#define SUFFIX_(major) ".so." #major
#define SUFFIX(major) SUFFIX_(major)
static const char *const versions[][2] = {
    {"libcrypto" SUFFIX(OPENSSL_VERSION_MAJOR),
     "libssl" SUFFIX(OPENSSL_VERSION_MAJOR)},
    {"libcrypto.so.4", "libssl.so.4"},
    {"libcrypto.so.3", "libssl.so.3"},
};

static void load_lib(void)
{
    static const char *const ssl[] = {FROM_SSL(HF__DYNLIB_NAME)};
    static const char *const crypto[] = {FROM_CRYPTO(HF__DYNLIB_NAME)};

    for (size_t i = 0; !lib_there && i < HF_COUNT_OF(versions); i++)
        lib_there =
            hf__dynlib_load(versions[i][0], crypto, HF_COUNT_OF(crypto),
                            &lib.crypto) &&
            hf__dynlib_load(versions[i][1], ssl, HF_COUNT_OF(ssl), &lib.ssl);
}

/* ---- our bytes --------------------------------------------------------- */

static int bio_result(BIO *bio, struct hf__tls *tls, ssize_t n, int retry)
{
    if (n >= 0)
        return (int)n;
    if (errno == EAGAIN || errno == EINTR)
        lib.crypto.BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    else
        tls->saved_errno = errno;
    return -1;
}

static int bio_read(BIO *bio, char *to, int size)
{
    struct hf__tls *tls = lib.crypto.BIO_get_data(bio);

    lib.crypto.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    return bio_result(bio, tls, hf__net_recv(tls->fd, to, (size_t)size),
                      BIO_FLAGS_READ);
}

static int bio_write(BIO *bio, const char *from, int len)
{
    struct hf__tls *tls = lib.crypto.BIO_get_data(bio);

    lib.crypto.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    return bio_result(bio, tls, hf__net_send(tls->fd, from, (size_t)len),
                      BIO_FLAGS_WRITE);
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_method(void)
{
    BIO_METHOD *method = lib.crypto.BIO_meth_new(
        lib.crypto.BIO_get_new_index() | BIO_TYPE_SOURCE_SINK,
        "holdfast socket");

    if (method && lib.crypto.BIO_meth_set_read(method, bio_read) == 1 &&
        lib.crypto.BIO_meth_set_write(method, bio_write) == 1 &&
        lib.crypto.BIO_meth_set_ctrl(method, bio_control) == 1)
        return method;
    lib.crypto.BIO_meth_free(method);
    return NULL;
}

/* ---- certificates ------------------------------------------------------ */

static int bad_file(const char *key, const char *path, hf_error *err)
{
    unsigned long code = lib.crypto.ERR_peek_last_error();
    const char *reason = lib.crypto.ERR_reason_error_string(code);

    (void)hf__fail(err, HF_ECONFIG, "%s: cannot use %s: %s", key, path,
                   reason ? reason : "not in PEM format");
    lib.crypto.ERR_clear_error();
    return HF_ECONFIG;
}

/* OpenSSL wants its length before it. */
static bool set_protocol(SSL_CTX *ssl, const char *protocol)
{
    unsigned char list[16];
    size_t len = strlen(protocol);

    if (len >= sizeof(list))
        return false;
    list[0] = (unsigned char)len;
    memcpy(list + 1, protocol, len);
    return lib.ssl.SSL_CTX_set_alpn_protos(ssl, list, (unsigned)len + 1) == 0;
}

/* OpenSSL needs the password of a key. */
struct question {
    const char *password; /* NULL or "": there is none */
    bool asked;
};

static int give_password(char *to, int size, int writing, void *arg)
{
    struct question *question = arg;
    size_t len = question->password ? strlen(question->password) : 0;

    (void)writing;
    question->asked = true;
    if (len == 0 || size < 0 || len > (size_t)size)
        return -1;
    memcpy(to, question->password, len);
    return (int)len;
}

static int load_key(SSL_CTX *ssl, const struct hf__tls_options *options,
                    hf_error *err)
{
    struct question question = {.password = options->key_password};
    bool loaded;

    lib.ssl.SSL_CTX_set_default_passwd_cb(ssl, give_password);
    lib.ssl.SSL_CTX_set_default_passwd_cb_userdata(ssl, &question);
    loaded = lib.ssl.SSL_CTX_use_PrivateKey_file(ssl, options->key,
                                                 SSL_FILETYPE_PEM) == 1;
    lib.ssl.SSL_CTX_set_default_passwd_cb_userdata(ssl, NULL);
    if (!loaded && question.asked) {
        lib.crypto.ERR_clear_error();
        return hf__fail(err, HF_ECONFIG, "tls.key: %s is encrypted, and %s",
                        options->key,
                        question.password && *question.password
                            ? "the password in tls.key_password_file does not "
                              "open it"
                            : "tls.key_password_file does not say the "
                              "password");
    }
    if (!loaded || lib.ssl.SSL_CTX_check_private_key(ssl) != 1)
        return bad_file("tls.key", options->key, err);
    return 0;
}

static int load(SSL_CTX *ssl, const struct hf__tls_options *options,
                hf_error *err)
{
    if (options->ca[0] == '\0')
        (void)lib.ssl.SSL_CTX_set_default_verify_paths(
            ssl); /* verify will tell */
    else if (lib.ssl.SSL_CTX_load_verify_locations(ssl, options->ca, NULL) != 1)
        return bad_file("tls.ca", options->ca, err);
    if (options->cert[0] == '\0')
        return 0;
    if (lib.ssl.SSL_CTX_use_certificate_chain_file(ssl, options->cert) != 1)
        return bad_file("tls.cert", options->cert, err);
    return load_key(ssl, options, err);
}

int hf__tls_context_new(const struct hf__tls_options *options,
                        struct hf__tls_context **ret_context, hf_error *err)
{
    struct hf__tls_context *context = hf__calloc(1, sizeof(*context));
    int rc;

    if (!context)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    (void)pthread_once(&lib_once, load_lib);
    if (!lib_there) {
        hf__free(context);
        return hf__fail(err, HF_EUNSUPPORTED,
                        "TLS needs %s: apt install libssl%d", versions[0][1],
                        OPENSSL_VERSION_MAJOR);
    }
    lib.crypto.ERR_clear_error();
    context->ssl = lib.ssl.SSL_CTX_new(lib.ssl.TLS_client_method());
    context->method = make_method();
    if (!context->ssl || !context->method ||
        lib.ssl.SSL_CTX_ctrl(context->ssl, SSL_CTRL_SET_MIN_PROTO_VERSION,
                             TLS1_2_VERSION, NULL) != 1 ||
        (options->protocol && !set_protocol(context->ssl, options->protocol))) {
        hf__tls_context_free(context);
        return hf__fail(err, HF_ENOMEM, "out of memory for TLS");
    }
    (void)lib.ssl.SSL_CTX_ctrl(context->ssl, SSL_CTRL_MODE,
                               SSL_MODE_ENABLE_PARTIAL_WRITE |
                                   SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER,
                               NULL);
    lib.ssl.SSL_CTX_set_verify(
        context->ssl, options->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
        NULL);
    rc = load(context->ssl, options, err);
    if (rc != 0) {
        hf__tls_context_free(context);
        return rc;
    }
    *ret_context = context;
    return 0;
}

void hf__tls_context_free(struct hf__tls_context *context)
{
    if (!context)
        return;
    lib.ssl.SSL_CTX_free(context->ssl);
    lib.crypto.BIO_meth_free(context->method);
    hf__free(context);
}

/* ---- connections ------------------------------------------------------- */

/* The name that the certificate must have. */
static bool set_peer(SSL *ssl, const char *host)
{
    unsigned char address[16];

    if (inet_pton(AF_INET, host, address) == 1 ||
        inet_pton(AF_INET6, host, address) == 1)
        return lib.crypto.X509_VERIFY_PARAM_set1_ip_asc(
                   lib.ssl.SSL_get0_param(ssl), host) == 1;
    lib.ssl.SSL_set_hostflags(ssl, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                       X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    /* OpenSSL's macro for this casts a constant away. */
    return lib.ssl.SSL_set1_host(ssl, host) == 1 &&
           lib.ssl.SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                            TLSEXT_NAMETYPE_host_name,
                            (void *)(uintptr_t)host) == 1;
}

int hf__tls_new(struct hf__tls_context *context, int fd, const char *host,
                struct hf__tls **ret_tls, hf_error *err)
{
    struct hf__tls *tls = hf__calloc(1, sizeof(*tls));
    BIO *bio;

    if (!tls)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    tls->fd = fd;
    tls->ssl = lib.ssl.SSL_new(context->ssl);
    bio = lib.crypto.BIO_new(context->method);
    if (!tls->ssl || !bio || !set_peer(tls->ssl, host)) {
        lib.crypto.BIO_free(bio);
        hf__tls_free(tls);
        return hf__fail(err, HF_ENOMEM, "out of memory for TLS");
    }
    lib.crypto.BIO_set_data(bio, tls);
    lib.crypto.BIO_set_init(bio, 1);
    lib.ssl.SSL_set_bio(tls->ssl, bio, bio);
    lib.ssl.SSL_set_connect_state(tls->ssl);
    *ret_tls = tls;
    return 0;
}

void hf__tls_close(struct hf__tls *tls)
{
    if (!tls || tls->failed)
        return;
    lib.crypto.ERR_clear_error();
    (void)lib.ssl.SSL_shutdown(tls->ssl); /* as much as the socket takes */
    lib.crypto.ERR_clear_error();
}

void hf__tls_free(struct hf__tls *tls)
{
    if (!tls)
        return;
    lib.ssl.SSL_free(tls->ssl);
    hf__free(tls);
}

static int outcome(struct hf__tls *tls, int n)
{
    switch (lib.ssl.SSL_get_error(tls->ssl, n)) {
    case SSL_ERROR_NONE:
        return n;
    case SSL_ERROR_WANT_READ:
        return HF__TLS_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return HF__TLS_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return HF__TLS_CLOSED;
    default:
        tls->failed = true;
        tls->reason = lib.crypto.ERR_peek_last_error();
        lib.crypto.ERR_clear_error();
        return HF__TLS_FAILED;
    }
}

int hf__tls_handshake(struct hf__tls *tls)
{
    lib.crypto.ERR_clear_error();
    return outcome(tls, lib.ssl.SSL_do_handshake(tls->ssl));
}

int hf__tls_read(struct hf__tls *tls, void *to, size_t size)
{
    lib.crypto.ERR_clear_error();
    return outcome(tls, lib.ssl.SSL_read(tls->ssl, to, (int)size));
}

int hf__tls_write(struct hf__tls *tls, const void *from, size_t len)
{
    lib.crypto.ERR_clear_error();
    return outcome(tls, lib.ssl.SSL_write(tls->ssl, from, (int)len));
}

bool hf__tls_pending(const struct hf__tls *tls)
{
    return lib.ssl.SSL_pending(tls->ssl) > 0;
}

/* Does the server want a certificate that we did not show, or another one? */
static bool about_our_certificate(unsigned long code)
{
    switch (ERR_GET_REASON(code)) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        return ERR_GET_LIB(code) == ERR_LIB_SSL;
    default:
        return false;
    }
}

/* The verdict alone does not tell: OpenSSL sets one before it has seen a
 * certificate, and a connection may break at any moment. */
static bool about_their_certificate(unsigned long code)
{
    return ERR_GET_LIB(code) == ERR_LIB_SSL &&
           ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED;
}

int hf__tls_explain(struct hf__tls *tls, hf_error *err)
{
    long verdict = lib.ssl.SSL_get_verify_result(tls->ssl);
    const char *reason = lib.crypto.ERR_reason_error_string(tls->reason);

    if (about_their_certificate(tls->reason))
        return hf__fail_engine(
            err, HF_EAUTH, (int)verdict,
            "the server's certificate is refused: %s. "
            "tls.ca names the certificates to trust",
            lib.crypto.X509_verify_cert_error_string(verdict));
    if (about_our_certificate(tls->reason))
        return hf__fail(err, HF_EAUTH,
                        "the server refuses our certificate (%s): set "
                        "tls.cert and tls.key",
                        reason ? reason : "no reason given");
    if (tls->saved_errno != 0)
        return hf__fail_engine(err, HF_EUNAVAILABLE, tls->saved_errno,
                               "TLS: %s", strerror(tls->saved_errno));
    return hf__fail(err, HF_EUNAVAILABLE, "TLS: %s",
                    reason ? reason : "the connection was cut");
}
