package org.limosa;

import org.limosa.abi.Abi;

/**
 * The exceptions of this package: one class for each error class of MPI-5, section 9.4, and {@link MismatchException}.
 * All are unchecked and extend {@link LimosaException}.
 *
 * <p>{@snippet :
 * import org.limosa.Errors.*;
 *
 * try {
 *     world.receiveInto(new double[10], 0);
 * } catch (TruncationException e) {
 *     System.err.println(e.getMessage());
 * }
 * }
 */
public final class Errors {
    private Errors() {}

    /** The exception of an error class. */
    static LimosaException of(int errorClass, String message, Throwable cause) {
        return switch (errorClass) {
            case Abi.MPI_ERR_BUFFER -> new BufferException(message, cause);
            case Abi.MPI_ERR_COUNT -> new CountException(message, cause);
            case Abi.MPI_ERR_TYPE -> new DatatypeException(message, cause);
            case Abi.MPI_ERR_TAG -> new TagException(message, cause);
            case Abi.MPI_ERR_COMM -> new CommunicatorException(message, cause);
            case Abi.MPI_ERR_RANK -> new RankException(message, cause);
            case Abi.MPI_ERR_REQUEST -> new RequestException(message, cause);
            case Abi.MPI_ERR_ROOT -> new RootException(message, cause);
            case Abi.MPI_ERR_GROUP -> new GroupException(message, cause);
            case Abi.MPI_ERR_OP -> new OperationException(message, cause);
            case Abi.MPI_ERR_TOPOLOGY -> new TopologyException(message, cause);
            case Abi.MPI_ERR_DIMS -> new DimensionsException(message, cause);
            case Abi.MPI_ERR_ARG -> new ArgumentException(message, cause);
            case Abi.MPI_ERR_UNKNOWN -> new UnknownException(message, cause);
            case Abi.MPI_ERR_TRUNCATE -> new TruncationException(message, cause);
            case Abi.MPI_ERR_INTERN -> new InternalException(message, cause);
            case Abi.MPI_ERR_IN_STATUS -> new InStatusException(message, cause);
            case Abi.MPI_ERR_PENDING -> new PendingException(message, cause);
            case Abi.MPI_ERR_KEYVAL -> new KeyvalException(message, cause);
            case Abi.MPI_ERR_NO_MEM -> new MemoryException(message, cause);
            case Abi.MPI_ERR_BASE -> new AddressException(message, cause);
            case Abi.MPI_ERR_INFO_KEY -> new InfoKeyException(message, cause);
            case Abi.MPI_ERR_INFO_VALUE -> new InfoValueException(message, cause);
            case Abi.MPI_ERR_INFO_NOKEY -> new InfoNoKeyException(message, cause);
            case Abi.MPI_ERR_SPAWN -> new SpawnException(message, cause);
            case Abi.MPI_ERR_PORT -> new PortException(message, cause);
            case Abi.MPI_ERR_SERVICE -> new ServiceException(message, cause);
            case Abi.MPI_ERR_NAME -> new ServiceNameException(message, cause);
            case Abi.MPI_ERR_WIN -> new WindowException(message, cause);
            case Abi.MPI_ERR_SIZE -> new SizeException(message, cause);
            case Abi.MPI_ERR_DISP -> new DisplacementException(message, cause);
            case Abi.MPI_ERR_INFO -> new InfoException(message, cause);
            case Abi.MPI_ERR_LOCKTYPE -> new LockTypeException(message, cause);
            case Abi.MPI_ERR_ASSERT -> new AssertException(message, cause);
            case Abi.MPI_ERR_RMA_CONFLICT -> new RmaConflictException(message, cause);
            case Abi.MPI_ERR_RMA_SYNC -> new RmaSyncException(message, cause);
            case Abi.MPI_ERR_RMA_RANGE -> new RmaRangeException(message, cause);
            case Abi.MPI_ERR_RMA_ATTACH -> new RmaAttachException(message, cause);
            case Abi.MPI_ERR_RMA_SHARED -> new RmaSharedException(message, cause);
            case Abi.MPI_ERR_RMA_FLAVOR -> new RmaFlavorException(message, cause);
            case Abi.MPI_ERR_BAD_FILE -> new BadFileException(message, cause);
            case Abi.MPI_ERR_NO_SUCH_FILE -> new NoSuchFileException(message, cause);
            case Abi.MPI_ERR_FILE_EXISTS -> new FileExistsException(message, cause);
            case Abi.MPI_ERR_FILE_IN_USE -> new FileInUseException(message, cause);
            case Abi.MPI_ERR_AMODE -> new AccessModeException(message, cause);
            case Abi.MPI_ERR_ACCESS -> new AccessException(message, cause);
            case Abi.MPI_ERR_READ_ONLY -> new ReadOnlyException(message, cause);
            case Abi.MPI_ERR_NO_SPACE -> new NoSpaceException(message, cause);
            case Abi.MPI_ERR_QUOTA -> new QuotaException(message, cause);
            case Abi.MPI_ERR_NOT_SAME -> new NotSameException(message, cause);
            case Abi.MPI_ERR_UNSUPPORTED_DATAREP -> new UnsupportedRepresentationException(message, cause);
            case Abi.MPI_ERR_UNSUPPORTED_OPERATION -> new UnsupportedOperationException(message, cause);
            case Abi.MPI_ERR_DUP_DATAREP -> new DuplicateRepresentationException(message, cause);
            case Abi.MPI_ERR_CONVERSION -> new ConversionException(message, cause);
            case Abi.MPI_ERR_IO -> new FileTransferException(message, cause);
            case Abi.MPI_ERR_FILE -> new FileException(message, cause);
            case Abi.MPI_ERR_SESSION -> new SessionException(message, cause);
            case Abi.MPI_ERR_VALUE_TOO_LARGE -> new ValueTooLargeException(message, cause);
            case Abi.MPI_ERR_ERRHANDLER -> new ErrhandlerException(message, cause);
            case Abi.MPI_ERR_ABI -> new AbiException(message, cause);
            case Abi.MPI_ERR_PROC_ABORTED -> new ProcessAbortedException(message, cause);
            default -> new OtherException(message, cause);
        };
    }

    /** Another kind of value has come than was asked for. The message is lost; the next one can be received. */
    public static final class MismatchException extends LimosaException {
        private static final long serialVersionUID = 1L;

        MismatchException(String message) {
            super(Abi.MPI_ERR_TYPE, message, null);
        }
    }
    /** The memory of a message cannot be used: {@code MPI_ERR_BUFFER}. */
    public static final class BufferException extends LimosaException {
        private static final long serialVersionUID = 1L;

        BufferException(String message, Throwable cause) {
            super(Abi.MPI_ERR_BUFFER, message, cause);
        }
    }

    /** A number of elements is not valid: {@code MPI_ERR_COUNT}. */
    public static final class CountException extends LimosaException {
        private static final long serialVersionUID = 1L;

        CountException(String message, Throwable cause) {
            super(Abi.MPI_ERR_COUNT, message, cause);
        }
    }

    /** The type of the elements is not valid, or not what was sent: {@code MPI_ERR_TYPE}. */
    public static final class DatatypeException extends LimosaException {
        private static final long serialVersionUID = 1L;

        DatatypeException(String message, Throwable cause) {
            super(Abi.MPI_ERR_TYPE, message, cause);
        }
    }

    /** A tag is not valid: {@code MPI_ERR_TAG}. */
    public static final class TagException extends LimosaException {
        private static final long serialVersionUID = 1L;

        TagException(String message, Throwable cause) {
            super(Abi.MPI_ERR_TAG, message, cause);
        }
    }

    /** The communicator is not valid, such as one that was freed: {@code MPI_ERR_COMM}. */
    public static final class CommunicatorException extends LimosaException {
        private static final long serialVersionUID = 1L;

        CommunicatorException(String message, Throwable cause) {
            super(Abi.MPI_ERR_COMM, message, cause);
        }
    }

    /** A rank is not in the communicator: {@code MPI_ERR_RANK}. */
    public static final class RankException extends LimosaException {
        private static final long serialVersionUID = 1L;

        RankException(String message, Throwable cause) {
            super(Abi.MPI_ERR_RANK, message, cause);
        }
    }

    /** A request is not valid: {@code MPI_ERR_REQUEST}. */
    public static final class RequestException extends LimosaException {
        private static final long serialVersionUID = 1L;

        RequestException(String message, Throwable cause) {
            super(Abi.MPI_ERR_REQUEST, message, cause);
        }
    }

    /** The root of a collective call is not in the communicator: {@code MPI_ERR_ROOT}. */
    public static final class RootException extends LimosaException {
        private static final long serialVersionUID = 1L;

        RootException(String message, Throwable cause) {
            super(Abi.MPI_ERR_ROOT, message, cause);
        }
    }

    /** A group is not valid: {@code MPI_ERR_GROUP}. */
    public static final class GroupException extends LimosaException {
        private static final long serialVersionUID = 1L;

        GroupException(String message, Throwable cause) {
            super(Abi.MPI_ERR_GROUP, message, cause);
        }
    }

    /** A reduction is not valid, or not defined for these elements: {@code MPI_ERR_OP}. */
    public static final class OperationException extends LimosaException {
        private static final long serialVersionUID = 1L;

        OperationException(String message, Throwable cause) {
            super(Abi.MPI_ERR_OP, message, cause);
        }
    }

    /** The communicator has no such topology: {@code MPI_ERR_TOPOLOGY}. */
    public static final class TopologyException extends LimosaException {
        private static final long serialVersionUID = 1L;

        TopologyException(String message, Throwable cause) {
            super(Abi.MPI_ERR_TOPOLOGY, message, cause);
        }
    }

    /** The dimensions of a grid are not valid: {@code MPI_ERR_DIMS}. */
    public static final class DimensionsException extends LimosaException {
        private static final long serialVersionUID = 1L;

        DimensionsException(String message, Throwable cause) {
            super(Abi.MPI_ERR_DIMS, message, cause);
        }
    }

    /** An argument is not valid: {@code MPI_ERR_ARG}. */
    public static final class ArgumentException extends LimosaException {
        private static final long serialVersionUID = 1L;

        ArgumentException(String message, Throwable cause) {
            super(Abi.MPI_ERR_ARG, message, cause);
        }
    }

    /** The library does not know what went wrong: {@code MPI_ERR_UNKNOWN}. */
    public static final class UnknownException extends LimosaException {
        private static final long serialVersionUID = 1L;

        UnknownException(String message, Throwable cause) {
            super(Abi.MPI_ERR_UNKNOWN, message, cause);
        }
    }

    /** A message is larger than the memory provided for it: {@code MPI_ERR_TRUNCATE}. */
    public static final class TruncationException extends LimosaException {
        private static final long serialVersionUID = 1L;

        TruncationException(String message, Throwable cause) {
            super(Abi.MPI_ERR_TRUNCATE, message, cause);
        }
    }

    /** An error without a class of its own: {@code MPI_ERR_OTHER}. */
    public static final class OtherException extends LimosaException {
        private static final long serialVersionUID = 1L;

        OtherException(String message, Throwable cause) {
            super(Abi.MPI_ERR_OTHER, message, cause);
        }
    }

    /** The MPI library itself is at fault: {@code MPI_ERR_INTERN}. */
    public static final class InternalException extends LimosaException {
        private static final long serialVersionUID = 1L;

        InternalException(String message, Throwable cause) {
            super(Abi.MPI_ERR_INTERN, message, cause);
        }
    }

    /** One of several requests failed: {@code MPI_ERR_IN_STATUS}. */
    public static final class InStatusException extends LimosaException {
        private static final long serialVersionUID = 1L;

        InStatusException(String message, Throwable cause) {
            super(Abi.MPI_ERR_IN_STATUS, message, cause);
        }
    }

    /** A request is neither complete nor failed: {@code MPI_ERR_PENDING}. */
    public static final class PendingException extends LimosaException {
        private static final long serialVersionUID = 1L;

        PendingException(String message, Throwable cause) {
            super(Abi.MPI_ERR_PENDING, message, cause);
        }
    }

    /** A key of an attribute is not valid: {@code MPI_ERR_KEYVAL}. */
    public static final class KeyvalException extends LimosaException {
        private static final long serialVersionUID = 1L;

        KeyvalException(String message, Throwable cause) {
            super(Abi.MPI_ERR_KEYVAL, message, cause);
        }
    }

    /** There is not enough memory: {@code MPI_ERR_NO_MEM}. */
    public static final class MemoryException extends LimosaException {
        private static final long serialVersionUID = 1L;

        MemoryException(String message, Throwable cause) {
            super(Abi.MPI_ERR_NO_MEM, message, cause);
        }
    }

    /** An address was not obtained from MPI: {@code MPI_ERR_BASE}. */
    public static final class AddressException extends LimosaException {
        private static final long serialVersionUID = 1L;

        AddressException(String message, Throwable cause) {
            super(Abi.MPI_ERR_BASE, message, cause);
        }
    }

    /** A key of an info object is too long or empty: {@code MPI_ERR_INFO_KEY}. */
    public static final class InfoKeyException extends LimosaException {
        private static final long serialVersionUID = 1L;

        InfoKeyException(String message, Throwable cause) {
            super(Abi.MPI_ERR_INFO_KEY, message, cause);
        }
    }

    /** A value of an info object is too long or empty: {@code MPI_ERR_INFO_VALUE}. */
    public static final class InfoValueException extends LimosaException {
        private static final long serialVersionUID = 1L;

        InfoValueException(String message, Throwable cause) {
            super(Abi.MPI_ERR_INFO_VALUE, message, cause);
        }
    }

    /** An info object has no such key: {@code MPI_ERR_INFO_NOKEY}. */
    public static final class InfoNoKeyException extends LimosaException {
        private static final long serialVersionUID = 1L;

        InfoNoKeyException(String message, Throwable cause) {
            super(Abi.MPI_ERR_INFO_NOKEY, message, cause);
        }
    }

    /** Processes could not be started: {@code MPI_ERR_SPAWN}. */
    public static final class SpawnException extends LimosaException {
        private static final long serialVersionUID = 1L;

        SpawnException(String message, Throwable cause) {
            super(Abi.MPI_ERR_SPAWN, message, cause);
        }
    }

    /** A port is not valid: {@code MPI_ERR_PORT}. */
    public static final class PortException extends LimosaException {
        private static final long serialVersionUID = 1L;

        PortException(String message, Throwable cause) {
            super(Abi.MPI_ERR_PORT, message, cause);
        }
    }

    /** A service is not published: {@code MPI_ERR_SERVICE}. */
    public static final class ServiceException extends LimosaException {
        private static final long serialVersionUID = 1L;

        ServiceException(String message, Throwable cause) {
            super(Abi.MPI_ERR_SERVICE, message, cause);
        }
    }

    /** A service name is not known: {@code MPI_ERR_NAME}. */
    public static final class ServiceNameException extends LimosaException {
        private static final long serialVersionUID = 1L;

        ServiceNameException(String message, Throwable cause) {
            super(Abi.MPI_ERR_NAME, message, cause);
        }
    }

    /** A window is not valid: {@code MPI_ERR_WIN}. */
    public static final class WindowException extends LimosaException {
        private static final long serialVersionUID = 1L;

        WindowException(String message, Throwable cause) {
            super(Abi.MPI_ERR_WIN, message, cause);
        }
    }

    /** A size is not valid: {@code MPI_ERR_SIZE}. */
    public static final class SizeException extends LimosaException {
        private static final long serialVersionUID = 1L;

        SizeException(String message, Throwable cause) {
            super(Abi.MPI_ERR_SIZE, message, cause);
        }
    }

    /** A displacement is not valid: {@code MPI_ERR_DISP}. */
    public static final class DisplacementException extends LimosaException {
        private static final long serialVersionUID = 1L;

        DisplacementException(String message, Throwable cause) {
            super(Abi.MPI_ERR_DISP, message, cause);
        }
    }

    /** An info object is not valid: {@code MPI_ERR_INFO}. */
    public static final class InfoException extends LimosaException {
        private static final long serialVersionUID = 1L;

        InfoException(String message, Throwable cause) {
            super(Abi.MPI_ERR_INFO, message, cause);
        }
    }

    /** A kind of lock is not valid: {@code MPI_ERR_LOCKTYPE}. */
    public static final class LockTypeException extends LimosaException {
        private static final long serialVersionUID = 1L;

        LockTypeException(String message, Throwable cause) {
            super(Abi.MPI_ERR_LOCKTYPE, message, cause);
        }
    }

    /** An assertion given to a call is not valid: {@code MPI_ERR_ASSERT}. */
    public static final class AssertException extends LimosaException {
        private static final long serialVersionUID = 1L;

        AssertException(String message, Throwable cause) {
            super(Abi.MPI_ERR_ASSERT, message, cause);
        }
    }

    /** Accesses to a window conflict: {@code MPI_ERR_RMA_CONFLICT}. */
    public static final class RmaConflictException extends LimosaException {
        private static final long serialVersionUID = 1L;

        RmaConflictException(String message, Throwable cause) {
            super(Abi.MPI_ERR_RMA_CONFLICT, message, cause);
        }
    }

    /** Synchronisation of a window is used wrongly: {@code MPI_ERR_RMA_SYNC}. */
    public static final class RmaSyncException extends LimosaException {
        private static final long serialVersionUID = 1L;

        RmaSyncException(String message, Throwable cause) {
            super(Abi.MPI_ERR_RMA_SYNC, message, cause);
        }
    }

    /** Memory is outside a window: {@code MPI_ERR_RMA_RANGE}. */
    public static final class RmaRangeException extends LimosaException {
        private static final long serialVersionUID = 1L;

        RmaRangeException(String message, Throwable cause) {
            super(Abi.MPI_ERR_RMA_RANGE, message, cause);
        }
    }

    /** Memory cannot be attached to a window: {@code MPI_ERR_RMA_ATTACH}. */
    public static final class RmaAttachException extends LimosaException {
        private static final long serialVersionUID = 1L;

        RmaAttachException(String message, Throwable cause) {
            super(Abi.MPI_ERR_RMA_ATTACH, message, cause);
        }
    }

    /** Memory cannot be shared: {@code MPI_ERR_RMA_SHARED}. */
    public static final class RmaSharedException extends LimosaException {
        private static final long serialVersionUID = 1L;

        RmaSharedException(String message, Throwable cause) {
            super(Abi.MPI_ERR_RMA_SHARED, message, cause);
        }
    }

    /** The window is of another kind: {@code MPI_ERR_RMA_FLAVOR}. */
    public static final class RmaFlavorException extends LimosaException {
        private static final long serialVersionUID = 1L;

        RmaFlavorException(String message, Throwable cause) {
            super(Abi.MPI_ERR_RMA_FLAVOR, message, cause);
        }
    }

    /** A file name is not valid: {@code MPI_ERR_BAD_FILE}. */
    public static final class BadFileException extends LimosaException {
        private static final long serialVersionUID = 1L;

        BadFileException(String message, Throwable cause) {
            super(Abi.MPI_ERR_BAD_FILE, message, cause);
        }
    }

    /** There is no such file: {@code MPI_ERR_NO_SUCH_FILE}. */
    public static final class NoSuchFileException extends LimosaException {
        private static final long serialVersionUID = 1L;

        NoSuchFileException(String message, Throwable cause) {
            super(Abi.MPI_ERR_NO_SUCH_FILE, message, cause);
        }
    }

    /** The file exists already: {@code MPI_ERR_FILE_EXISTS}. */
    public static final class FileExistsException extends LimosaException {
        private static final long serialVersionUID = 1L;

        FileExistsException(String message, Throwable cause) {
            super(Abi.MPI_ERR_FILE_EXISTS, message, cause);
        }
    }

    /** The file is in use: {@code MPI_ERR_FILE_IN_USE}. */
    public static final class FileInUseException extends LimosaException {
        private static final long serialVersionUID = 1L;

        FileInUseException(String message, Throwable cause) {
            super(Abi.MPI_ERR_FILE_IN_USE, message, cause);
        }
    }

    /** An access mode is not valid: {@code MPI_ERR_AMODE}. */
    public static final class AccessModeException extends LimosaException {
        private static final long serialVersionUID = 1L;

        AccessModeException(String message, Throwable cause) {
            super(Abi.MPI_ERR_AMODE, message, cause);
        }
    }

    /** Access is not permitted: {@code MPI_ERR_ACCESS}. */
    public static final class AccessException extends LimosaException {
        private static final long serialVersionUID = 1L;

        AccessException(String message, Throwable cause) {
            super(Abi.MPI_ERR_ACCESS, message, cause);
        }
    }

    /** The file or file system can only be read: {@code MPI_ERR_READ_ONLY}. */
    public static final class ReadOnlyException extends LimosaException {
        private static final long serialVersionUID = 1L;

        ReadOnlyException(String message, Throwable cause) {
            super(Abi.MPI_ERR_READ_ONLY, message, cause);
        }
    }

    /** There is not enough space: {@code MPI_ERR_NO_SPACE}. */
    public static final class NoSpaceException extends LimosaException {
        private static final long serialVersionUID = 1L;

        NoSpaceException(String message, Throwable cause) {
            super(Abi.MPI_ERR_NO_SPACE, message, cause);
        }
    }

    /** A quota is exceeded: {@code MPI_ERR_QUOTA}. */
    public static final class QuotaException extends LimosaException {
        private static final long serialVersionUID = 1L;

        QuotaException(String message, Throwable cause) {
            super(Abi.MPI_ERR_QUOTA, message, cause);
        }
    }

    /** The ranks gave different arguments: {@code MPI_ERR_NOT_SAME}. */
    public static final class NotSameException extends LimosaException {
        private static final long serialVersionUID = 1L;

        NotSameException(String message, Throwable cause) {
            super(Abi.MPI_ERR_NOT_SAME, message, cause);
        }
    }

    /** A data representation is not supported: {@code MPI_ERR_UNSUPPORTED_DATAREP}. */
    public static final class UnsupportedRepresentationException extends LimosaException {
        private static final long serialVersionUID = 1L;

        UnsupportedRepresentationException(String message, Throwable cause) {
            super(Abi.MPI_ERR_UNSUPPORTED_DATAREP, message, cause);
        }
    }

    /** The library does not have this function: {@code MPI_ERR_UNSUPPORTED_OPERATION}. */
    public static final class UnsupportedOperationException extends LimosaException {
        private static final long serialVersionUID = 1L;

        UnsupportedOperationException(String message, Throwable cause) {
            super(Abi.MPI_ERR_UNSUPPORTED_OPERATION, message, cause);
        }
    }

    /** A data representation exists already: {@code MPI_ERR_DUP_DATAREP}. */
    public static final class DuplicateRepresentationException extends LimosaException {
        private static final long serialVersionUID = 1L;

        DuplicateRepresentationException(String message, Throwable cause) {
            super(Abi.MPI_ERR_DUP_DATAREP, message, cause);
        }
    }

    /** Data could not be converted: {@code MPI_ERR_CONVERSION}. */
    public static final class ConversionException extends LimosaException {
        private static final long serialVersionUID = 1L;

        ConversionException(String message, Throwable cause) {
            super(Abi.MPI_ERR_CONVERSION, message, cause);
        }
    }

    /** Reading or writing failed: {@code MPI_ERR_IO}. */
    public static final class FileTransferException extends LimosaException {
        private static final long serialVersionUID = 1L;

        FileTransferException(String message, Throwable cause) {
            super(Abi.MPI_ERR_IO, message, cause);
        }
    }

    /** A file handle is not valid: {@code MPI_ERR_FILE}. */
    public static final class FileException extends LimosaException {
        private static final long serialVersionUID = 1L;

        FileException(String message, Throwable cause) {
            super(Abi.MPI_ERR_FILE, message, cause);
        }
    }

    /** A session is not valid: {@code MPI_ERR_SESSION}. */
    public static final class SessionException extends LimosaException {
        private static final long serialVersionUID = 1L;

        SessionException(String message, Throwable cause) {
            super(Abi.MPI_ERR_SESSION, message, cause);
        }
    }

    /** A value does not fit into its type: {@code MPI_ERR_VALUE_TOO_LARGE}. */
    public static final class ValueTooLargeException extends LimosaException {
        private static final long serialVersionUID = 1L;

        ValueTooLargeException(String message, Throwable cause) {
            super(Abi.MPI_ERR_VALUE_TOO_LARGE, message, cause);
        }
    }

    /** An error handler is not valid: {@code MPI_ERR_ERRHANDLER}. */
    public static final class ErrhandlerException extends LimosaException {
        private static final long serialVersionUID = 1L;

        ErrhandlerException(String message, Throwable cause) {
            super(Abi.MPI_ERR_ERRHANDLER, message, cause);
        }
    }

    /** The library's binary interface does not fit: {@code MPI_ERR_ABI}. */
    public static final class AbiException extends LimosaException {
        private static final long serialVersionUID = 1L;

        AbiException(String message, Throwable cause) {
            super(Abi.MPI_ERR_ABI, message, cause);
        }
    }

    /** A process has aborted: {@code MPI_ERR_PROC_ABORTED}. */
    public static final class ProcessAbortedException extends LimosaException {
        private static final long serialVersionUID = 1L;

        ProcessAbortedException(String message, Throwable cause) {
            super(Abi.MPI_ERR_PROC_ABORTED, message, cause);
        }
    }
}
