/* Which operation is done by which combination of others (a recipe), for how many ranks and bytes.
 *
 * The variable LIMOSA_TUNED holds rules with semicolons between them, each of three or four words:
 *
 *     bcast=scatter+allgather 8 65536-1048576
 *     allreduce=reduce+bcast * 0-*
 *     barrier=allreduce 2 0-* single-serialized
 *
 * the recipe, the number of ranks (* for any), the bytes from-to (* for no end), and the thread level that MPI has
 * provided, or the lowest and the highest such level (single, funneled, serialized, multiple). Without the fourth word
 * a rule holds at each level. Bytes are those of the models (limosa_lab/model/metrics.py): of the message or vector;
 * all blocks together for operations with blocks.
 * The first rule that fits is taken. All ranks have the same rules, since the launcher gives them all one variable, and
 * select them by the same level (`rules_select`).
 *
 * A text that makes no sense counts as none: rank 0 says what is wrong with it. */
#ifndef RULES_H
#define RULES_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation {
    BCAST,
    ALLGATHER,
    ALLGATHERV,
    GATHER,
    SCATTER,
    ALLTOALL,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN,
    BARRIER,
    OPERATIONS
};

enum recipe {
    ITSELF, /* not substituted */
    BCAST_SCATTER_ALLGATHER,
    BCAST_ALLREDUCE,
    BCAST_SEND,
    ALLGATHER_GATHER_BCAST,
    ALLGATHER_ALLGATHERV,
    ALLGATHER_ALLTOALLV,
    ALLGATHER_ALLREDUCE,
    ALLGATHER_SEND,
    ALLGATHERV_GATHERV_BCAST,
    GATHER_ALLGATHER,
    GATHER_GATHERV,
    GATHER_REDUCE,
    GATHER_SEND,
    SCATTER_BCAST,
    SCATTER_SCATTERV,
    SCATTER_SEND,
    ALLTOALL_ALLTOALLV,
    ALLTOALL_SEND,
    REDUCE_ALLREDUCE,
    REDUCE_REDUCE_SCATTER_GATHER,
    ALLREDUCE_REDUCE_BCAST,
    ALLREDUCE_REDUCE_SCATTER_ALLGATHER,
    REDUCE_SCATTER_REDUCE_SCATTER,
    REDUCE_SCATTER_ALLREDUCE,
    BLOCK_REDUCE_SCATTER,
    BLOCK_ALLREDUCE,
    BLOCK_REDUCE_THEN_SCATTER,
    SCAN_ALLGATHER,
    SCAN_EXSCAN,
    EXSCAN_ALLGATHER,
    BARRIER_ALLREDUCE,
    RECIPES
};

/* The names are those of the guidelines without blanks (limosa_lab/model/equivalents.py). */
static const struct {
    const char *name;
    enum operation operation;
} recipes[RECIPES] = {
    [BCAST_SCATTER_ALLGATHER] = {"bcast=scatter+allgather", BCAST},
    [BCAST_ALLREDUCE] = {"bcast=allreduce", BCAST},
    [BCAST_SEND] = {"bcast=send", BCAST},
    [ALLGATHER_GATHER_BCAST] = {"allgather=gather+bcast", ALLGATHER},
    [ALLGATHER_ALLGATHERV] = {"allgather=allgatherv", ALLGATHER},
    [ALLGATHER_ALLTOALLV] = {"allgather=alltoallv", ALLGATHER},
    [ALLGATHER_ALLREDUCE] = {"allgather=allreduce", ALLGATHER},
    [ALLGATHER_SEND] = {"allgather=send", ALLGATHER},
    [ALLGATHERV_GATHERV_BCAST] = {"allgatherv=gatherv+bcast", ALLGATHERV},
    [GATHER_ALLGATHER] = {"gather=allgather", GATHER},
    [GATHER_GATHERV] = {"gather=gatherv", GATHER},
    [GATHER_REDUCE] = {"gather=reduce", GATHER},
    [GATHER_SEND] = {"gather=send", GATHER},
    [SCATTER_BCAST] = {"scatter=bcast", SCATTER},
    [SCATTER_SCATTERV] = {"scatter=scatterv", SCATTER},
    [SCATTER_SEND] = {"scatter=send", SCATTER},
    [ALLTOALL_ALLTOALLV] = {"alltoall=alltoallv", ALLTOALL},
    [ALLTOALL_SEND] = {"alltoall=send", ALLTOALL},
    [REDUCE_ALLREDUCE] = {"reduce=allreduce", REDUCE},
    [REDUCE_REDUCE_SCATTER_GATHER] = {"reduce=reduce_scatter+gather", REDUCE},
    [ALLREDUCE_REDUCE_BCAST] = {"allreduce=reduce+bcast", ALLREDUCE},
    [ALLREDUCE_REDUCE_SCATTER_ALLGATHER] = {"allreduce=reduce_scatter+allgather", ALLREDUCE},
    [REDUCE_SCATTER_REDUCE_SCATTER] = {"reduce_scatter=reduce+scatter", REDUCE_SCATTER},
    [REDUCE_SCATTER_ALLREDUCE] = {"reduce_scatter=allreduce", REDUCE_SCATTER},
    [BLOCK_REDUCE_SCATTER] = {"reduce_scatter_block=reduce_scatter", REDUCE_SCATTER_BLOCK},
    [BLOCK_ALLREDUCE] = {"reduce_scatter_block=allreduce", REDUCE_SCATTER_BLOCK},
    [BLOCK_REDUCE_THEN_SCATTER] = {"reduce_scatter_block=reduce+scatter", REDUCE_SCATTER_BLOCK},
    [SCAN_ALLGATHER] = {"scan=allgather", SCAN},
    [SCAN_EXSCAN] = {"scan=exscan", SCAN},
    [EXSCAN_ALLGATHER] = {"exscan=allgather", EXSCAN},
    [BARRIER_ALLREDUCE] = {"barrier=allreduce", BARRIER},
};

enum { MOST_RULES = 1000 };

/* Thread levels of MPI; UNKNOWN until they are known, and if ranks have different ones. */
enum level { UNKNOWN = -1, SINGLE, FUNNELED, SERIALIZED, MULTIPLE, LEVELS };

static const char *const levels[LEVELS] = {"single", "funneled", "serialized", "multiple"};

struct rule {
    enum recipe recipe;
    long ranks; /* 0: any */
    long long low, high;
    enum level lowest, highest;
};

static struct {
    struct rule given[MOST_RULES]; /* in the order of the text */
    int count;
    bool by_level;                /* some of them hold at some levels only */
    struct rule rule[MOST_RULES]; /* those that hold: by operation, and those of one in the order of the text */
    int end[OPERATIONS];          /* behind the last rule of each operation */
    bool has[OPERATIONS];         /* has rules, or the text makes no sense, which is to be told */
    char wrong[200];              /* what is wrong with the text; empty if nothing */
} rules;

/* A number without a sign at `*at`, which is moved behind it, or `any` for an asterisk. */
static bool read_number(char **at, long long any, long long *number)
{
    if (**at == '*') {
        ++*at;
        *number = any;
        return true;
    }
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *number = strtoll(*at, at, 10);
    return !errno;
}

/* The level that a word of so many characters names; UNKNOWN if it is none. */
static enum level read_level(const char *word, size_t length)
{
    for (int level = SINGLE; level < LEVELS; level++)
        if (strlen(levels[level]) == length && !strncmp(levels[level], word, length))
            return (enum level)level;
    return UNKNOWN;
}

/* One level, or two with a hyphen between them. */
static bool read_levels(const char *text, struct rule *rule)
{
    size_t length = strcspn(text, "-");
    const char *highest = text[length] ? text + length + 1 : text;
    rule->lowest = read_level(text, length);
    rule->highest = read_level(highest, strlen(highest));
    return rule->lowest != UNKNOWN && rule->lowest <= rule->highest;
}

static bool read_rule(char *text, struct rule *rule)
{
    size_t length = strcspn(text, " ");
    rule->recipe = ITSELF;
    for (int recipe = ITSELF + 1; recipe < RECIPES; recipe++)
        if (strlen(recipes[recipe].name) == length && !strncmp(recipes[recipe].name, text, length))
            rule->recipe = (enum recipe)recipe;
    char *at = text + length;
    long long ranks = 0;
    bool well = rule->recipe != ITSELF && *at++ == ' ' && read_number(&at, 0, &ranks) && *at++ == ' ' &&
                read_number(&at, 0, &rule->low) && *at++ == '-' && read_number(&at, INT64_MAX, &rule->high);
    rule->ranks = (long)ranks;
    rule->lowest = SINGLE;
    rule->highest = MULTIPLE;
    return well && rule->low <= rule->high && (!*at || (*at == ' ' && read_levels(at + 1, rule)));
}

/* Takes the rules that hold at a level, at UNKNOWN those that hold at each, and puts those of each operation together:
 * calls look at those of their own alone. */
static void rules_select(enum level level)
{
    enum level least = level == UNKNOWN ? MULTIPLE : level, most = level == UNKNOWN ? SINGLE : level;
    int count = 0;
    for (int operation = 0; operation < OPERATIONS; operation++) {
        int before = count;
        for (int i = 0; i < rules.count; i++) {
            const struct rule *rule = &rules.given[i];
            if (recipes[rule->recipe].operation == (enum operation)operation && rule->lowest <= most &&
                rule->highest >= least)
                rules.rule[count++] = *rule;
        }
        rules.end[operation] = count;
        rules.has[operation] = count > before || *rules.wrong;
    }
}

/* When the library is loaded, so that calls need not look whether it was done. */
__attribute__((constructor)) static void read_rules(void)
{
    const char *given = getenv("LIMOSA_TUNED");
    char *text = strdup(given ? given : ""), *rest = text;
    for (char *one; text && (one = strsep(&rest, ";"));) {
        one += strspn(one, " ");
        if (!*one)
            continue;
        struct rule *rule = &rules.given[rules.count];
        if (rules.count == MOST_RULES || !read_rule(one, rule)) {
            if (rules.count == MOST_RULES)
                snprintf(rules.wrong, sizeof rules.wrong, "there are more than %d rules", MOST_RULES);
            else
                snprintf(rules.wrong, sizeof rules.wrong, "`%.100s` is not a rule", one);
            rules.count = 0;
            break;
        }
        rules.by_level |= rule->lowest != SINGLE || rule->highest != MULTIPLE;
        rules.count++;
    }
    free(text);
    rules_select(UNKNOWN);
}

static int first_rule(enum operation operation)
{
    return operation ? rules.end[operation - 1] : 0;
}

/* Are there rules for an operation, with so many ranks? */
static inline bool rules_have(enum operation operation, int ranks)
{
    for (int i = first_rule(operation); i < rules.end[operation]; i++)
        if (!rules.rule[i].ranks || rules.rule[i].ranks == ranks)
            return true;
    return false;
}

static enum recipe rules_choose(enum operation operation, int ranks, long long bytes)
{
    for (int i = first_rule(operation); i < rules.end[operation]; i++) {
        const struct rule *rule = &rules.rule[i];
        if ((!rule->ranks || rule->ranks == ranks) && bytes >= rule->low && bytes <= rule->high)
            return rule->recipe;
    }
    return ITSELF;
}

#endif
