/* The file that this code was loaded from: libplue itself, or what it is linked into statically. */
#ifndef PLUE_IMAGE_H
#define PLUE_IMAGE_H

/* Notes where it is, and keeps it loaded until the process ends: threads end in it after its host
 * has let go of it. Once, while it is loaded: a host may change its current folder later. */
void plue_image_prepare(void);

/* Its folder, from the root and without a slash at the end; "" if that is not known. */
const char *plue_image_folder(void);

/* The folder that was the current one when it was loaded; "" if that is not known. */
const char *plue_image_start_folder(void);

#endif
