/* expat.h - libexpat, found when a spreadsheet is read */
#ifndef LIB_IO_EXPAT_H
#define LIB_IO_EXPAT_H

#include "io/library.h"

#if !defined(ACC_NO_EXPAT) && defined(__has_include)
#if __has_include(<expat.h>)
#define ACC_HAVE_EXPAT 1
#include <expat.h>
#endif
#endif

#ifdef ACC_HAVE_EXPAT
/* clang-format off */
#define ACC_EXPAT_CALLS(X) \
	X(XML_ParserCreate) X(XML_ParserFree) X(XML_SetUserData) X(XML_SetElementHandler) \
	X(XML_SetCharacterDataHandler) X(XML_SetStartDoctypeDeclHandler) X(XML_Parse) X(XML_StopParser) \
	X(XML_GetErrorCode) X(XML_ErrorString)
/* clang-format on */
struct acc_expat {
	ACC_EXPAT_CALLS(ACC_LIBRARY_POINTER)
};
/* Loaded once, and kept. NULL where it is not there: *e says why. */
const struct acc_expat *acc_expat_load(struct acc_err *e);
#endif

#endif
