// A process that has used the library forks, and the child has a server of its own.
#define _POSIX_C_SOURCE 200809L
#include <godwit.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int serve(const char *chain, const char *key) {
    const char *addresses[] = {"127.0.0.1:0"};
    godwit_server_options options = {.size = sizeof options, .addresses = addresses, .address_count = 1};
    options.certificate_file = chain;
    options.key_file = key;
    godwit_error error = {.size = sizeof error};
    godwit_queue queue;
    godwit_server server;
    if (godwit_queue_create(NULL, &queue, &error) || godwit_server_create(queue, &options, 0, &server, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    return 0;
}

int main(int count, char **arguments) {
    if (count != 3 || serve(arguments[1], arguments[2])) {
        return 2;
    }
    pid_t child = fork();
    if (child == 0) {
        // It would hang for ever.
        alarm(60);
        _exit(serve(arguments[1], arguments[2]));
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 3;
}
