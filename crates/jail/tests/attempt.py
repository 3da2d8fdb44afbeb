# What the attempts of `testing/corpora/jail.txt` find, and the verdict on them.
import ctypes, errno, fcntl, json, mmap, os, platform, resource, signal, socket, stat, struct, subprocess, sys, time

globals().update(json.loads(os.environ["JAIL_OUTSIDE"]))
X86 = platform.machine() == "x86_64"
LIBC = ctypes.CDLL(None, use_errno=True)
# Numbers on x86-64 and on arm64; from 424 on they are the same.
NUMBERS = """
renameat2 316 276/inotify_init1 294 26/inotify_add_watch 254 27/fanotify_init 300 262
name_to_handle_at 303 264/open_by_handle_at 304 265/execveat 322 281/capset 126 91/capget 125 90
prctl 157 167/tgkill 234 131/rt_sigqueueinfo 129 138/ptrace 101 117/process_vm_readv 310 270
process_vm_writev 311 271/pidfd_getfd 438 438/kcmp 312 272/process_madvise 440 440/move_pages 279 239
unshare 272 97/clone 56 220/clone3 435 435/setns 308 268/mount 165 40/fsopen 430 430
open_tree 428 428/umount2 166 39/pivot_root 155 41/keyctl 250 219/add_key 248 217/request_key 249 218
io_uring_setup 425 425/bpf 321 280/perf_event_open 298 241/userfaultfd 323 282/init_module 175 105
finit_module 313 273/kexec_load 246 104/reboot 169 142/swapon 167 224/acct 163 89/quotactl 179 60
syslog 103 116/settimeofday 164 170/adjtimex 159 171/personality 135 92/vhangup 153 58/iopl 172 -1
modify_ldt 154 -1/shmget 29 194/msgget 68 186/semget 64 190/mq_open 240 180/mlock 149 228
"""
nr = {}
for row in NUMBERS.replace("\n", "/").split("/"):
    if row:
        name, x86, arm = row.split()
        nr[name] = int(x86 if X86 else arm)


def call(number, *arguments):
    number = nr.get(number, number)
    plain = [ctypes.c_long(it) if isinstance(it, int) else it for it in arguments]
    ctypes.set_errno(0)
    result = LIBC.syscall(ctypes.c_long(number), *plain)
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def fails(condition):
    if condition:
        raise PermissionError(errno.EPERM, "as it should be")


def stop(attempt):
    try:
        attempt()
    except OSError:
        pass


def stop_thread(thread):
    try:
        thread.start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, str(error))


def raise_limit(which):
    most = resource.getrlimit(which)[1]
    try:
        resource.setrlimit(which, (most + 1, most + 1))
    except ValueError as error:
        raise OSError(errno.EPERM, str(error))


def isopen(number):
    try:
        fcntl.fcntl(number, fcntl.F_GETFD)
        return True
    except OSError:
        return False


def caps():
    data = ctypes.create_string_buffer(24)
    call("capget", ctypes.create_string_buffer(struct.pack("<Ii", 0x20080522, 0)), data)
    return struct.unpack("<6I", data.raw)


FENCES = "EPERM EACCES ENOSYS EAGAIN ENOMEM EFBIG EMFILE EXDEV".split()
first = os.getpid()
try:
    exec(compile(sys.argv[1], "attempt", "exec"))
    verdict = "done"
except MemoryError:
    verdict = "refused ENOMEM"
except OSError as error:
    code = errno.errorcode.get(error.errno, str(error))
    verdict = ("refused " if code in FENCES else "broken ") + code
except BaseException as error:
    verdict = f"broken {error!r}"
if os.getpid() == first:
    os.write(1, verdict.encode())
os._exit(0)
