#include "abi.h"
#include <cstdlib>
#include <cstdio>
extern "C" int assay_self_test(assay_ctx*);
static void* al(assay_ctx*, size_t b, size_t a, int){return aligned_alloc(a<8?8:a,(b+a-1)/a*a);} static void fr(assay_ctx*,void*p){free(p);}
int main(){assay_ctx x{1,-1,nullptr,2,al,fr,nullptr}; printf("%s\n",assay_self_test(&x)?"REJECTED":"accepted");}
