/* Info objects: MPI-5 chapter 10. */
#include "limosa_test.h"

/* The value of a key must be this. */
static void check_value(int line, MPI_Info info, const char *key, const char *expected)
{
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int flag = -1, length = (int)sizeof value;
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    lt_count_check();
    if (expected == NULL ? flag != 0 : flag != 1 || strcmp(value, expected) != 0 || length != (int)strlen(expected) + 1)
        lt_fail(__FILE__, line, "key %s: expected %.40s, got flag %d, length %d, value %.40s", key,
                expected ? expected : "nothing", flag, length, value);
}

#define CHECK_VALUE(info, key, expected) check_value(__LINE__, (info), (key), (expected))

static void set_and_get(void)
{
    MPI_Info info;
    int n = -1;
    OK(MPI_Info_create(&info));
    CHECK(info != MPI_INFO_NULL);
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK_INT(n, 0);
    CHECK_VALUE(info, "absent", NULL);
    OK(MPI_Info_set(info, "one", "1"));
    OK(MPI_Info_set(info, "two words", "a value with spaces"));
    CHECK_VALUE(info, "one", "1");
    CHECK_VALUE(info, "two words", "a value with spaces");
    OK(MPI_Info_set(info, "one", "another"));
    CHECK_VALUE(info, "one", "another");
    CHECK_VALUE(info, "One", NULL);
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK_INT(n, 2);
    OK(MPI_Info_delete(info, "one"));
    CHECK_VALUE(info, "one", NULL);
    FAILS(MPI_ERR_INFO_NOKEY, MPI_Info_delete(info, "one"));
    OK(MPI_Info_free(&info));
    CHECK_PTR(info, MPI_INFO_NULL);
}

static void order_of_keys(void)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    for (int i = 0; i < 50; i++) {
        char key[16], value[16];
        snprintf(key, sizeof key, "key %d", 49 - i);
        snprintf(value, sizeof value, "%d", i);
        OK(MPI_Info_set(info, key, value));
    }
    int n = -1;
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK_INT(n, 50);
    /* Each key is reported once; the numbering stays while the object is not changed. */
    char seen[50] = {0};
    for (int i = 0; i < n; i++) {
        char key[MPI_MAX_INFO_KEY], again[MPI_MAX_INFO_KEY], value[16];
        int number = -1;
        OK(MPI_Info_get_nthkey(info, i, key));
        OK(MPI_Info_get_nthkey(info, i, again));
        CHECK_STR(again, key);
        if (sscanf(key, "key %d", &number) == 1 && number >= 0 && number < 50) {
            CHECK_INT(seen[number]++, 0);
            snprintf(value, sizeof value, "%d", 49 - number);
            CHECK_VALUE(info, key, value);
        } else {
            lt_fail(__FILE__, __LINE__, "unknown key %s", key);
        }
    }
    char key[MPI_MAX_INFO_KEY];
    FAILS(MPI_ERR_ARG, MPI_Info_get_nthkey(info, 50, key));
    FAILS(MPI_ERR_ARG, MPI_Info_get_nthkey(info, -1, key));
    OK(MPI_Info_free(&info));
}

static void limits(void)
{
    MPI_Info info;
    char key[MPI_MAX_INFO_KEY + 2], value[MPI_MAX_INFO_VAL + 2];
    OK(MPI_Info_create(&info));
    memset(key, 'k', sizeof key);
    memset(value, 'v', sizeof value);
    key[MPI_MAX_INFO_KEY - 1] = 0;
    value[MPI_MAX_INFO_VAL - 1] = 0;
    OK(MPI_Info_set(info, key, value));
    CHECK_VALUE(info, key, value);
    key[MPI_MAX_INFO_KEY - 1] = 'k';
    key[MPI_MAX_INFO_KEY] = 0;
#ifndef MPICH /* whose MPI_MAX_INFO_KEY does not count the null character */
    FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, key, "x"));
#endif
    value[MPI_MAX_INFO_VAL - 1] = 'v';
    value[MPI_MAX_INFO_VAL] = 0;
    FAILS(MPI_ERR_INFO_VALUE, MPI_Info_set(info, "key", value));
    FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, "", "x"));
    OK(MPI_Info_set(info, "empty value", ""));
    CHECK_VALUE(info, "empty value", "");
    OK(MPI_Info_free(&info));
}

/* The buffer is shorter than the value: what fits is returned, and the length that would be needed. */
static void short_buffers(void)
{
    MPI_Info info;
    char value[8];
    int flag = 0, length = 0;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "key", "0123456789"));
    OK(MPI_Info_get_string(info, "key", &length, NULL, &flag));
    CHECK_INT(flag, 1);
    CHECK_INT(length, 11);
    memset(value, 'x', sizeof value);
    length = 5;
    OK(MPI_Info_get_string(info, "key", &length, value, &flag));
    CHECK_INT(length, 11);
    CHECK_STR(value, "0123");
    CHECK_INT(value[5], 'x');
    /* The older calls, without the terminating character in their lengths. */
    OK(MPI_Info_get_valuelen(info, "key", &length, &flag));
    CHECK_INT(flag, 1);
    CHECK_INT(length, 10);
    OK(MPI_Info_get(info, "key", 4, value, &flag));
    CHECK_INT(flag, 1);
    CHECK_STR(value, "0123");
    OK(MPI_Info_get(info, "none", 4, value, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_Info_get_valuelen(info, "none", &length, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_Info_free(&info));
}

static void duplicate(void)
{
    MPI_Info info, copy;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "a", "1"));
    OK(MPI_Info_set(info, "b", "2"));
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_set(info, "a", "changed"));
    OK(MPI_Info_delete(info, "b"));
    CHECK_VALUE(copy, "a", "1");
    CHECK_VALUE(copy, "b", "2");
    OK(MPI_Info_free(&info));
    CHECK_VALUE(copy, "a", "1");
    char first[MPI_MAX_INFO_KEY], second[MPI_MAX_INFO_KEY];
    OK(MPI_Info_get_nthkey(copy, 0, first));
    OK(MPI_Info_get_nthkey(copy, 1, second));
    CHECK_STR(first, "a");
    CHECK_STR(second, "b");
    OK(MPI_Info_free(&copy));
}

static void environment(void)
{
    MPI_Info info;
    int n = -1, flag = -1;
    char *arguments[] = {"program", "first", "second", NULL};
    char value[64];
    int length = sizeof value;
    OK(MPI_Info_get_nkeys(MPI_INFO_ENV, &n));
    CHECK(n >= 0);
    OK(MPI_Info_get_string(MPI_INFO_ENV, "maxprocs", &length, value, &flag));
    if (flag)
        CHECK_INT(atoi(value), lt_size);
    OK(MPI_Info_create_env(3, arguments, &info));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n >= 0);
    OK(MPI_Info_free(&info));
    OK(MPI_Info_create_env(0, NULL, &info));
    OK(MPI_Info_free(&info));
    REFUSED(MPI_Info_set(MPI_INFO_NULL, "key", "value"));
}

LT_MAIN("info", TEST(set_and_get), TEST(order_of_keys), TEST(limits), TEST(short_buffers), TEST(duplicate),
        TEST(environment))
