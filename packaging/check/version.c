#include <godwit.h>
#include <stdio.h>

int main(void) {
    return puts(godwit_version()) == EOF;
}
