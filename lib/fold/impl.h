/* impl.h - what the files of lib/fold share */
#ifndef FOLD_IMPL_H
#define FOLD_IMPL_H

#include "fold/data.h"
#include "fold/decide.h"
#include "fold/find.h"

#endif
