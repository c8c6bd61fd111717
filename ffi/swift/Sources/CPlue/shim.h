#include <plue.h>
