/*
 * Runs a command to which the system refuses a system call, as a sandbox may: deny NAME ERRNO COMMAND...
 * Exit code 77: the system has no filters.
 */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    long number;
} calls[] = {
    {"close_range", SYS_close_range},
    {"membarrier", SYS_membarrier},
    {"pidfd_open", SYS_pidfd_open},
    {"prctl", SYS_prctl},
    {"process_vm_readv", SYS_process_vm_readv},
    {"setsid", SYS_setsid},
    {"waitid", SYS_waitid},
};

int main(int count, char **words)
{
    long number = -1;
    for (size_t i = 0; i < sizeof calls / sizeof *calls && count > 3; i++) {
        if (strcmp(calls[i].name, words[1]) == 0)
            number = calls[i].number;
    }
    if (number < 0)
        return 2;
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)atoi(words[2])),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0)
        return 77;
    execvp(words[3], words + 3);
    perror(words[3]);
    return 127;
}
