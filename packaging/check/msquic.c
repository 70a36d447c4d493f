#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

/* Finds the library by the name that programs for MsQuic look for, and opens it. */
int main(void) {
    void *library = dlopen("libmsquic.so.2", RTLD_NOW);
    if (library == NULL) {
        return fprintf(stderr, "%s\n", dlerror()), 1;
    }
    uint32_t (*open_version)(uint32_t, const void **) = (uint32_t(*)(uint32_t, const void **))dlsym(library, "MsQuicOpenVersion");
    void (*close)(const void *) = (void (*)(const void *))dlsym(library, "MsQuicClose");
    const void *table = NULL;
    if (open_version == NULL || close == NULL || open_version(2, &table) != 0 || table == NULL) {
        return fputs("the library has no functions\n", stderr), 1;
    }
    close(table);
    return puts("opened") == EOF;
}
