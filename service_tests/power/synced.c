/* What a disk holds when the power goes.
 *
 * Preloaded into a process, this stands between it and the files below the directory POWER_DISK, and keeps in
 * POWER_JOURNAL what a disk would be sure to hold:
 *
 *   content/INODE  the bytes of a file as of its last fsync or fdatasync
 *   whole/INODE    a mark: bytes were cut or written over since then, so the next sync copies all of them
 *   dead/INODE     a link of a file that lost its name, so that its inode is given to no other
 *   names          entries of directories, whenever they change ("now") and at each fsync of a directory ("synced")
 *   hold           while this is there, no sync returns: the power goes before the disk is done
 *   full           while this is there, the disk is full
 *
 * The disk itself is never synced: the copy stands for it. Bytes written through a mapping of memory are not seen
 * before the next sync of the whole file; nobody here writes so.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define REAL(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

static const char *disk, *journal;

__attribute__((constructor)) static void begin(void)
{
    /* Copies, as a process may write its title over its environment. */
    const char *of = getenv("POWER_DISK"), *in = getenv("POWER_JOURNAL");
    journal = in ? strdup(in) : NULL;
    disk = of && in ? strdup(of) : NULL;
}

static int within(const char *path)
{
    size_t length = strlen(disk);
    return !strncmp(path, disk, length) && (path[length] == '/' || !path[length]);
}

/* The path of an open file; 0 unless it is below the disk. */
static int path_of(int fd, char *path)
{
    char link[64];
    if (!disk || fd < 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return length > 0 && within(path);
}

/* The directory that a name stands in; 0 unless it is below the disk. */
static int parent_of(int at, const char *path, char *parent)
{
    char full[2 * PATH_MAX];
    if (!disk)
        return 0;
    if (path[0] == '/')
        snprintf(full, sizeof full, "%s", path);
    else if (at == AT_FDCWD)
        snprintf(full, sizeof full, "./%s", path);
    else
        snprintf(full, sizeof full, "/proc/self/fd/%d/%s", at, path);
    *strrchr(full, '/') = 0;
    return realpath(full, parent) && within(parent);
}

static int kept(const char *part, ino_t inode, const char *suffix, int flags, char *path)
{
    snprintf(path, PATH_MAX, "%s/%s/%lu%s", journal, part, (unsigned long)inode, suffix);
    return flags < 0 ? -1 : REAL(open)(path, flags, 0600);
}

/* Write down the entries of a directory. */
static void list(const char *directory, const char *when)
{
    char path[PATH_MAX], *text = NULL;
    size_t length = 0;
    DIR *entries = opendir(directory);
    if (!entries)
        return;
    FILE *out = open_memstream(&text, &length);
    fprintf(out, "%s %s\n", when, directory);
    struct dirent *entry;
    struct stat file;
    while ((entry = readdir(entries)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            !fstatat(dirfd(entries), entry->d_name, &file, AT_SYMLINK_NOFOLLOW))
            fprintf(out, "%lu %o %s\n", (unsigned long)file.st_ino, (unsigned)file.st_mode, entry->d_name);
    fputc('\n', out);
    fclose(out);
    closedir(entries);
    snprintf(path, sizeof path, "%s/names", journal);
    int names = REAL(open)(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (write(names, text, length) != (ssize_t)length)
        abort();
    close(names);
    free(text);
}

/* Copy what a file holds: what was added since the last sync, or all of it. */
static void keep(int fd, ino_t inode)
{
    char path[PATH_MAX], part[PATH_MAX], mark[PATH_MAX], bytes[1 << 16];
    kept("whole", inode, "", -1, mark);
    int whole = !access(mark, F_OK);
    int to = kept("content", inode, whole ? ".part" : "", O_WRONLY | O_CREAT | (whole ? O_TRUNC : 0), part);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int from = REAL(open)(path, O_RDONLY);
    struct stat before;
    fstat(to, &before);
    off_t at = before.st_size;
    for (ssize_t n; (n = pread(from, bytes, sizeof bytes, at)) > 0; at += n)
        if (REAL(pwrite)(to, bytes, n, at) != n)
            abort();
    close(from);
    close(to);
    if (whole) {
        kept("content", inode, "", -1, path);
        REAL(rename)(part, path);
        REAL(unlink)(mark);
    }
}

static int there(const char *mark)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", journal, mark);
    return !access(path, F_OK);
}

static int synced(int fd, int (*really)(int))
{
    char path[PATH_MAX];
    struct stat file;
    if (!path_of(fd, path) || fstat(fd, &file))
        return really(fd);
    while (there("hold"))
        usleep(1000);
    if (S_ISDIR(file.st_mode))
        list(path, "synced");
    else if (S_ISREG(file.st_mode))
        keep(fd, file.st_ino);
    return 0;
}

/* What stands in a file is not only added to. */
static void rewritten(const struct stat *file)
{
    char path[PATH_MAX];
    if (S_ISREG(file->st_mode))
        close(kept("whole", file->st_ino, "", O_WRONLY | O_CREAT, path));
}

static void rewritten_fd(int fd)
{
    char path[PATH_MAX];
    struct stat file;
    if (path_of(fd, path) && !fstat(fd, &file))
        rewritten(&file);
}

/* A file is about to lose its name. */
static void losing(int at, const char *path)
{
    char parent[PATH_MAX], link[PATH_MAX];
    struct stat file;
    if (!parent_of(at, path, parent) || fstatat(at, path, &file, AT_SYMLINK_NOFOLLOW) || !S_ISREG(file.st_mode))
        return;
    kept("dead", file.st_ino, "", -1, link);
    linkat(at, path, AT_FDCWD, link, 0);
}

static int changed(int at, const char *path, int result)
{
    char parent[PATH_MAX];
    int error = errno;
    if (!result && parent_of(at, path, parent))
        list(parent, "now");
    errno = error;
    return result;
}

static int opened(int at, const char *path, int flags, int fd)
{
    int error = errno;
    if (fd >= 0 && flags & O_TRUNC)
        rewritten_fd(fd);
    if (fd >= 0 && flags & O_CREAT)
        changed(at, path, 0);
    errno = error;
    return fd;
}

#define MODE(last) va_list rest; va_start(rest, last); mode_t mode = va_arg(rest, mode_t); va_end(rest)

int open(const char *path, int flags, ...) { MODE(flags); return opened(AT_FDCWD, path, flags, REAL(open)(path, flags, mode)); }
int open64(const char *path, int flags, ...) { MODE(flags); return opened(AT_FDCWD, path, flags, REAL(open)(path, flags, mode)); }
int openat(int at, const char *path, int flags, ...) { MODE(flags); return opened(at, path, flags, REAL(openat)(at, path, flags, mode)); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags); return opened(at, path, flags, REAL(openat)(at, path, flags, mode)); }

int fsync(int fd) { return synced(fd, REAL(fsync)); }
int fdatasync(int fd) { return synced(fd, REAL(fdatasync)); }

int ftruncate(int fd, off_t length) { rewritten_fd(fd); return REAL(ftruncate)(fd, length); }
int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) { rewritten_fd(fd); return REAL(pwrite)(fd, bytes, n, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t at) { return pwrite(fd, bytes, n, at); }

/* Whoever goes back in a file may write over what is there. */
off_t lseek(int fd, off_t at, int from)
{
    struct stat file;
    off_t now = REAL(lseek)(fd, at, from);
    if (disk && now >= 0 && !fstat(fd, &file) && now < file.st_size)
        rewritten_fd(fd);
    return now;
}
off_t lseek64(int fd, off_t at, int from) { return lseek(fd, at, from); }

ssize_t write(int fd, const void *bytes, size_t n)
{
    char path[PATH_MAX];
    struct stat file;
    if (disk && there("full") && path_of(fd, path) && !fstat(fd, &file) && S_ISREG(file.st_mode)) {
        errno = ENOSPC;
        return -1;
    }
    return REAL(write)(fd, bytes, n);
}

int statvfs(const char *path, struct statvfs *found)
{
    char full[PATH_MAX];
    int result = REAL(statvfs)(path, found);
    if (!result && disk && there("full") && realpath(path, full) && within(full))
        found->f_bfree = found->f_bavail = 0;
    return result;
}
int statvfs64(const char *path, struct statvfs64 *found) { return statvfs(path, (struct statvfs *)found); }

int truncate(const char *path, off_t length)
{
    char parent[PATH_MAX];
    struct stat file;
    if (parent_of(AT_FDCWD, path, parent) && !stat(path, &file))
        rewritten(&file);
    return REAL(truncate)(path, length);
}
int truncate64(const char *path, off_t length) { return truncate(path, length); }

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    losing(to_at, to);
    int result = REAL(renameat)(from_at, from, to_at, to);
    return changed(from_at, from, changed(to_at, to, result));
}
int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int unlinkat(int at, const char *path, int flags)
{
    losing(at, path);
    return changed(at, path, REAL(unlinkat)(at, path, flags));
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int mkdir(const char *path, mode_t mode) { return changed(AT_FDCWD, path, REAL(mkdir)(path, mode)); }
int mkdirat(int at, const char *path, mode_t mode) { return changed(at, path, REAL(mkdirat)(at, path, mode)); }
