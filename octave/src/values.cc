// Octave values as bytes, and back: see values.h.

#include "values.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <list>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include <octave/Cell.h>
#include <octave/interpreter.h>
#include <octave/oct-map.h>
#include <octave/ov-class.h>
#include <octave/ov-complex.h>
#include <octave/ov-cx-mat.h>
#include <octave/ov-fcn-handle.h>
#include <octave/ov-float.h>
#include <octave/ov-flt-complex.h>
#include <octave/ov-flt-cx-mat.h>
#include <octave/parse.h>
#include <octave/pt-eval.h>
#include <octave/unwind-prot.h>
#include <octave/utils.h>

namespace limosa
{
octave_value result_of(const octave_value &function, const octave_value_list &arguments)
{
    octave::tree_evaluator &evaluator = octave::interpreter::the_interpreter()->get_evaluator();
    const auto *ignored = evaluator.lvalue_list();
    octave::unwind_action restore([&evaluator, ignored]() { evaluator.set_lvalue_list(ignored); });
    evaluator.set_lvalue_list(nullptr);
    const octave_value_list found = function.is_string() ? octave::feval(function.string_value(), arguments, 1)
                                                         : octave::feval(function, arguments, 1);
    return found.length() > 0 ? found(0) : octave_value();
}

namespace
{
constexpr char magic[] = {'L', 'O', 'V', '1'};
constexpr int most_dims = 4;      // in an envelope
constexpr int most_nesting = 500; // of cells in structs in cells ...

[[noreturn]] void damaged(const char *what)
{
    error_with_id("limosa:damaged", "limosa: these bytes are no Octave value: %s", what);
}

[[noreturn]] void cannot_send(const std::string &what)
{
    error_with_id("limosa:class", "limosa: %s cannot be sent; send the numbers, cells or structs it is made of",
                  what.c_str());
}

// --- dense arrays ------------------------------------------------------------------------------------------------

template <typename T> void view_array(Dense &view, Class cls, const Array<T> &array, std::uint8_t flags = 0)
{
    view.cls = cls;
    view.flags = flags;
    view.dims = array.dims();
    view.elements = array.numel();
    view.element_bytes = sizeof(T);
    view.array = nullptr;
    // The array that Octave makes of a single number is gone after this.
    if (view.elements == 1)
        std::memcpy(view.scalar, static_cast<const void *>(array.data()), sizeof(T));
    else
        view.array = array.data();
}

// From this length on memory is asked for in large pages: the system clears and maps it much faster.
constexpr std::size_t large = std::size_t(4) << 20;

// Never none: also an empty array owns some.
Memory memory_for(std::size_t bytes)
{
    Memory memory(static_cast<char *>(::operator new(std::max<std::size_t>(bytes, 16))));
    if (bytes >= large) {
        // Only a hint: it may fail.
        const std::size_t page = sysconf(_SC_PAGESIZE);
        const std::size_t before = -reinterpret_cast<std::uintptr_t>(memory.get()) % page;
        (void)madvise(memory.get() + before, (bytes - before) / page * page, MADV_HUGEPAGE);
    }
    return memory;
}

// An array whose memory is allocated but not written yet, unlike those that Octave makes.
template <typename A, typename T = typename A::element_type> A adopt(void *memory, const dim_vector &dims)
{
    return A(Array<T>(static_cast<T *>(memory), dims));
}

// The array of this class that owns `memory`, which was allocated with `operator new`. Complex numbers stay complex
// even if all their imaginary parts are 0.
octave_value owning(Class cls, std::uint8_t flags, const dim_vector &dims, void *memory)
{
    const bool is_complex = flags & complex_flag;
    const bool is_one = dims.ndims() == 2 && dims(0) == 1 && dims(1) == 1;
    switch (cls) {
    case Class::double_:
        if (is_complex) {
            ComplexNDArray array = adopt<ComplexNDArray>(memory, dims);
            return is_one ? octave_value(new octave_complex(array(0))) : octave_value(new octave_complex_matrix(array));
        }
        return octave_value(adopt<NDArray>(memory, dims));
    case Class::single_:
        if (is_complex) {
            FloatComplexNDArray array = adopt<FloatComplexNDArray>(memory, dims);
            return is_one ? octave_value(new octave_float_complex(array(0)))
                          : octave_value(new octave_float_complex_matrix(array));
        }
        return octave_value(adopt<FloatNDArray>(memory, dims));
    case Class::int8_: return octave_value(adopt<int8NDArray>(memory, dims));
    case Class::int16_: return octave_value(adopt<int16NDArray>(memory, dims));
    case Class::int32_: return octave_value(adopt<int32NDArray>(memory, dims));
    case Class::int64_: return octave_value(adopt<int64NDArray>(memory, dims));
    case Class::uint8_: return octave_value(adopt<uint8NDArray>(memory, dims));
    case Class::uint16_: return octave_value(adopt<uint16NDArray>(memory, dims));
    case Class::uint32_: return octave_value(adopt<uint32NDArray>(memory, dims));
    case Class::uint64_: return octave_value(adopt<uint64NDArray>(memory, dims));
    case Class::logical_: return octave_value(adopt<boolNDArray>(memory, dims));
    case Class::char_: return octave_value(adopt<charNDArray>(memory, dims), flags & double_quoted_flag ? '"' : '\'');
    default: damaged("an array of an unknown class");
    }
}

// How long an element of a dense array is; 0 if there is no such class.
std::size_t element_bytes(Class cls, std::uint8_t flags)
{
    std::size_t real = 0;
    switch (cls) {
    case Class::double_:
    case Class::int64_:
    case Class::uint64_: real = 8; break;
    case Class::single_:
    case Class::int32_:
    case Class::uint32_: real = 4; break;
    case Class::int16_:
    case Class::uint16_: real = 2; break;
    case Class::int8_:
    case Class::uint8_:
    case Class::logical_:
    case Class::char_: real = 1; break;
    default: return 0;
    }
    if (!(flags & complex_flag))
        return real;
    return cls == Class::double_ || cls == Class::single_ ? 2 * real : 0;
}

// The product of dimensions that come from outside.
std::size_t product(const dim_vector &dims)
{
    std::size_t product = 1, without_zeros = 1;
    for (int i = 0; i < dims.ndims(); i++) {
        if (dims(i) < 0 ||
            __builtin_mul_overflow(without_zeros, std::size_t(std::max<octave_idx_type>(dims(i), 1)), &without_zeros) ||
            without_zeros > std::size_t(std::numeric_limits<octave_idx_type>::max()) / 16)
            damaged("impossible dimensions");
        product *= dims(i);
    }
    return product;
}

// Logical values have two bit patterns only.
void check_logical(Class cls, const char *data, std::size_t length)
{
    if (cls == Class::logical_ && std::any_of(data, data + length, [](char byte) { return byte & ~1; }))
        damaged("a logical value that is neither true nor false");
}

// An array of bytes that lie elsewhere.
octave_value copied(Class cls, std::uint8_t flags, const dim_vector &dims, const char *data, std::size_t length)
{
    check_logical(cls, data, length);
    Memory memory = memory_for(length);
    std::memcpy(memory.get(), data, length);
    return owning(cls, flags, dims, memory.release());
}

std::uint64_t checksum(const std::string &text)
{
    std::uint64_t sum = 14695981039346656037u; // FNV-1a
    for (unsigned char byte : text)
        sum = (sum ^ byte) * 1099511628211u;
    return sum;
}

// --- encoding ----------------------------------------------------------------------------------------------------

class Encoder
{
  public:
    explicit Encoder(std::string &out) : m_out(out)
    {
    }

    void value(const octave_value &value, int depth = 0)
    {
        if (depth > most_nesting)
            error_with_id("limosa:class", "limosa: a value nested more than %d deep cannot be sent", most_nesting);
        Dense view;
        if (value.issparse())
            sparse(value);
        else if (dense(value, view)) {
            item(view.cls, view.flags);
            dims(view.dims);
            bytes(view.data(), view.bytes());
        } else if (value.iscell()) {
            const Cell elements = value.cell_value();
            item(Class::cell);
            dims(elements.dims());
            for (octave_idx_type i = 0; i < elements.numel(); i++)
                this->value(elements(i), depth + 1);
        } else if (value.is_function_handle())
            function(value, depth);
        else if (value.is_classdef_object() && value.class_name() == "containers.Map")
            map(value, depth);
        else if (value.isobject() && !value.is_classdef_object() && !value.isjava()) {
            item(Class::object);
            text(value.class_name());
            const std::list<std::string> parents = value.parent_class_name_list();
            number(parents.size());
            for (const auto &parent : parents)
                text(parent);
            fields(value.map_value(), depth);
        } else if (value.isstruct()) {
            item(value.numel() == 1 && value.ndims() == 2 ? Class::struct_scalar : Class::struct_array);
            fields(value.map_value(), depth);
        } else
            cannot_send("a value of class '" + value.class_name() + "'");
    }

  private:
    void bytes(const void *data, std::size_t length)
    {
        m_out.append(static_cast<const char *>(data), length);
    }

    void number(std::uint64_t number)
    {
        bytes(&number, sizeof number);
    }

    void item(Class cls, std::uint8_t flags = 0)
    {
        m_out += static_cast<char>(cls);
        m_out += static_cast<char>(flags);
    }

    void text(const std::string &text)
    {
        number(text.size());
        m_out += text;
    }

    void dims(const dim_vector &dims)
    {
        number(dims.ndims());
        for (int i = 0; i < dims.ndims(); i++)
            number(dims(i));
    }

    template <typename M> void compressed(const M &matrix)
    {
        number(matrix.rows());
        number(matrix.cols());
        number(matrix.nnz());
        bytes(matrix.cidx(), (matrix.cols() + 1) * sizeof(octave_idx_type));
        bytes(matrix.ridx(), matrix.nnz() * sizeof(octave_idx_type));
        bytes(matrix.data(), matrix.nnz() * sizeof(typename M::element_type));
    }

    void sparse(const octave_value &value)
    {
        item(Class::sparse, value.islogical() ? logical_flag : value.iscomplex() ? complex_flag : 0);
        if (value.islogical())
            compressed(value.sparse_bool_matrix_value());
        else if (value.iscomplex())
            compressed(value.sparse_complex_matrix_value());
        else
            compressed(value.sparse_matrix_value());
    }

    void fields(const octave_map &map, int depth)
    {
        dims(map.dims());
        const string_vector keys = map.fieldnames();
        number(keys.numel());
        for (octave_idx_type k = 0; k < keys.numel(); k++) {
            text(keys(k));
            const Cell elements = map.contents(keys(k));
            for (octave_idx_type i = 0; i < elements.numel(); i++)
                value(elements(i), depth + 1);
        }
    }

    void function(const octave_value &value, int depth)
    {
        octave_fcn_handle *handle = value.fcn_handle_value();
        octave_scalar_map info = handle->info();
        if (handle->is_anonymous()) {
            const std::string body = info.contents("function").string_value();
            item(Class::anonymous_function);
            text(body);
            number(checksum(body));
            octave_value captured = info.contents("workspace");
            if (captured.iscell())
                captured = captured.cell_value().isempty() ? octave_value(octave_scalar_map())
                                                           : octave_value(captured.cell_value()(0));
            fields(captured.isstruct() ? captured.map_value() : octave_map(dim_vector(1, 1)), depth);
            return;
        }
        const std::string kind = info.contents("type").is_string() ? info.contents("type").string_value() : "";
        if (kind != "simple" && kind != "operator")
            cannot_send("the handle of the " + kind + " '" + handle->fcn_name() +
                        "', which other processes do not see,");
        item(Class::named_function);
        text(handle->fcn_name());
    }

    void map(const octave_value &map, int depth)
    {
        auto property = [&map](const char *name) {
            return octave_value(map).subsref(".", {octave_value_list(octave_value(name))});
        };
        item(Class::map);
        value(property("KeyType"), depth + 1);
        value(property("ValueType"), depth + 1);
        value(result_of("keys", octave_value_list(map)), depth + 1);
        value(result_of("values", octave_value_list(map)), depth + 1);
    }

    std::string &m_out;
};

// --- decoding ----------------------------------------------------------------------------------------------------

class Decoder
{
  public:
    Decoder(const char *bytes, std::size_t length) : m_next(bytes), m_left(length)
    {
    }

    // The one value that all the bytes are.
    octave_value whole()
    {
        const octave_value result = value(0);
        if (m_left != 0)
            damaged("something follows it");
        return result;
    }

  private:
    const char *take(std::size_t length)
    {
        if (length > m_left)
            damaged("they end early");
        const char *taken = m_next;
        m_next += length;
        m_left -= length;
        return taken;
    }

    // As many elements of this size as another number says.
    const char *take(std::size_t elements, std::size_t size)
    {
        if (elements > m_left / size)
            damaged("they end early");
        return take(elements * size);
    }

    std::uint64_t number()
    {
        std::uint64_t number;
        std::memcpy(&number, take(sizeof number), sizeof number);
        return number;
    }

    std::string text()
    {
        const std::size_t length = number();
        const char *start = take(length);
        return std::string(start, length);
    }

    dim_vector dims()
    {
        const std::size_t count = number();
        if (count < 2 || count > m_left / sizeof(std::uint64_t))
            damaged("an impossible number of dimensions");
        dim_vector dims = dim_vector::alloc(count);
        for (std::size_t i = 0; i < count; i++)
            dims(i) = number();
        product(dims);
        return dims;
    }

    octave_value value(int depth)
    {
        if (depth > most_nesting)
            damaged("they are nested too deep");
        const Class cls = static_cast<Class>(*take(1));
        const std::uint8_t flags = *take(1);
        switch (cls) {
        case Class::sparse: return sparse(flags);
        case Class::cell: return elements(dims(), depth);
        case Class::struct_array: return octave_value(fields(depth));
        case Class::struct_scalar: return octave_value(one(fields(depth)));
        case Class::named_function: return named_function();
        case Class::anonymous_function: return anonymous_function(depth);
        case Class::object: return object(depth);
        case Class::map: return map(depth);
        default: return array(cls, flags);
        }
    }

    octave_value array(Class cls, std::uint8_t flags)
    {
        const std::size_t size = element_bytes(cls, flags);
        if (size == 0)
            damaged("a value of an unknown class");
        const dim_vector shape = dims();
        const std::size_t count = product(shape);
        const char *start = take(count, size);
        return copied(cls, flags, shape, start, count * size);
    }

    Cell elements(const dim_vector &shape, int depth)
    {
        const std::size_t count = product(shape);
        if (count > m_left / 2)
            damaged("they end early");
        Cell cell(shape);
        for (std::size_t i = 0; i < count; i++)
            cell(i) = value(depth + 1);
        return cell;
    }

    octave_map fields(int depth)
    {
        const dim_vector shape = dims();
        const std::size_t count = number();
        octave_map map(shape);
        for (std::size_t k = 0; k < count; k++) {
            const std::string key = text();
            map.setfield(key, elements(shape, depth));
        }
        return map;
    }

    static octave_scalar_map one(const octave_map &map)
    {
        if (map.numel() != 1)
            damaged("a single struct with several elements");
        return map.checkelem(0);
    }

    octave_value named_function()
    {
        const std::string name = text();
        if (name.empty() ||
            name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") !=
                std::string::npos)
            damaged("a function with an impossible name");
        return result_of("str2func", octave_value_list(octave_value(name)));
    }

    octave_value anonymous_function(int depth)
    {
        const std::string body = text();
        if (number() != checksum(body) || body.compare(0, 1, "@") != 0)
            damaged("a function whose text has changed");
        const octave_scalar_map captured = one(fields(depth));
        // The text is evaluated where exactly the captured variables are visible.
        octave::interpreter &interpreter = *octave::interpreter::the_interpreter();
        octave::tree_evaluator &evaluator = interpreter.get_evaluator();
        evaluator.push_dummy_scope("limosa");
        octave::unwind_action leave([&evaluator]() { evaluator.pop_scope(); });
        const string_vector keys = captured.fieldnames();
        for (octave_idx_type i = 0; i < keys.numel(); i++) {
            if (!octave::valid_identifier(keys(i)))
                damaged("a variable with an impossible name");
            interpreter.assign(keys(i), captured.contents(keys(i)));
        }
        int status = 0;
        const octave_value made = interpreter.eval_string(body, true, status);
        if (status != 0 || !made.is_function_handle())
            damaged("a function that cannot be read");
        return made;
    }

    octave_value object(int depth)
    {
        const std::string name = text();
        const std::size_t count = number();
        if (count > m_left / sizeof(std::uint64_t))
            damaged("they end early");
        std::list<std::string> parents;
        for (std::size_t i = 0; i < count; i++)
            parents.push_back(text());
        const octave_map map = fields(depth);
        return octave_value(new octave_class(map, name, parents));
    }

    octave_value map(int depth)
    {
        const octave_value key_type = value(depth + 1), value_type = value(depth + 1);
        const octave_value keys = value(depth + 1), values = value(depth + 1);
        if (!key_type.is_string() || !value_type.is_string() || !keys.iscell() || !values.iscell() ||
            keys.numel() != values.numel())
            damaged("a map without keys");
        const Cell all_keys = keys.cell_value(), all_values = values.cell_value();
        try {
            octave_value_list arguments;
            arguments.append(octave_value("KeyType"));
            arguments.append(key_type);
            arguments.append(octave_value("ValueType"));
            arguments.append(value_type);
            octave_value made = result_of("containers.Map", arguments);
            for (octave_idx_type i = 0; i < all_keys.numel(); i++)
                made = made.subsasgn("(", {octave_value_list(all_keys(i))}, all_values(i));
            return made;
        } catch (const octave::execution_exception &problem) {
            damaged(problem.message().c_str());
        }
    }

    // Copies the parts of a sparse matrix, and checks that they are one.
    template <typename M> M compressed()
    {
        using T = typename M::element_type;
        const std::uint64_t rows = number(), columns = number(), count = number();
        constexpr std::uint64_t most = std::numeric_limits<octave_idx_type>::max() / 16;
        if (rows > most || columns >= m_left / sizeof(octave_idx_type) || count > m_left / sizeof(octave_idx_type))
            damaged("an impossible sparse matrix");
        const char *starts = take(columns + 1, sizeof(octave_idx_type));
        const char *indices = take(count, sizeof(octave_idx_type));
        const char *data = take(count, sizeof(T));
        if (std::is_same<T, bool>::value)
            check_logical(Class::logical_, data, count);
        M matrix(static_cast<octave_idx_type>(rows), static_cast<octave_idx_type>(columns),
                 static_cast<octave_idx_type>(count));
        std::memcpy(matrix.xcidx(), starts, (columns + 1) * sizeof(octave_idx_type));
        std::memcpy(matrix.xridx(), indices, count * sizeof(octave_idx_type));
        std::memcpy(reinterpret_cast<char *>(matrix.xdata()), data, count * sizeof(T));
        bool is_right = matrix.xcidx(0) == 0 && matrix.xcidx(columns) == octave_idx_type(count);
        for (std::uint64_t j = 0; is_right && j < columns; j++)
            is_right = matrix.xcidx(j) <= matrix.xcidx(j + 1);
        for (std::uint64_t j = 0; is_right && j < columns; j++)
            for (octave_idx_type k = matrix.xcidx(j); is_right && k < matrix.xcidx(j + 1); k++)
                is_right = matrix.xridx(k) >= 0 && std::uint64_t(matrix.xridx(k)) < rows &&
                           (k == matrix.xcidx(j) || matrix.xridx(k - 1) < matrix.xridx(k));
        if (!is_right)
            damaged("a sparse matrix with wrong indices");
        return matrix;
    }

    octave_value sparse(std::uint8_t flags)
    {
        if (flags & logical_flag)
            return octave_value(compressed<SparseBoolMatrix>());
        if (flags & complex_flag)
            return octave_value(compressed<SparseComplexMatrix>());
        return octave_value(compressed<SparseMatrix>());
    }

    const char *m_next;
    std::size_t m_left;
};

// What an envelope says.
struct Header {
    Class cls;
    std::uint8_t flags;
    dim_vector dims;
    std::size_t body_bytes;

    explicit Header(const char *envelope)
    {
        if (std::memcmp(envelope, magic, sizeof magic) != 0)
            damaged("they do not begin like one; was this message sent by another program or version?");
        cls = static_cast<Class>(envelope[4]);
        flags = envelope[5];
        std::uint64_t length;
        std::memcpy(&length, envelope + 8, sizeof length);
        body_bytes = length;
        if (cls == Class::encoded)
            return;
        const int count = static_cast<unsigned char>(envelope[6]);
        const std::size_t size = element_bytes(cls, flags);
        if (size == 0 || count < 2 || count > most_dims)
            damaged("a value of an unknown class");
        dims = dim_vector::alloc(count);
        for (int i = 0; i < count; i++) {
            std::int64_t extent;
            std::memcpy(&extent, envelope + 16 + 8 * i, sizeof extent);
            dims(i) = extent;
        }
        if (product(dims) > body_bytes / size || product(dims) * size != body_bytes)
            damaged("the array has another length than its dimensions say");
    }
};
} // namespace

bool dense(const octave_value &value, Dense &view)
{
    view.owner = value.is_range() || value.is_diag_matrix() || value.is_perm_matrix() ? value.full_value() : value;
    const octave_value &owner = view.owner;
    if (owner.issparse() || owner.isobject() || owner.is_function_handle())
        return false;
    switch (owner.builtin_type()) {
    case btyp_double: view_array(view, Class::double_, owner.array_value()); break;
    case btyp_float: view_array(view, Class::single_, owner.float_array_value()); break;
    case btyp_complex: view_array(view, Class::double_, owner.complex_array_value(), complex_flag); break;
    case btyp_float_complex: view_array(view, Class::single_, owner.float_complex_array_value(), complex_flag); break;
    case btyp_int8: view_array(view, Class::int8_, owner.int8_array_value()); break;
    case btyp_int16: view_array(view, Class::int16_, owner.int16_array_value()); break;
    case btyp_int32: view_array(view, Class::int32_, owner.int32_array_value()); break;
    case btyp_int64: view_array(view, Class::int64_, owner.int64_array_value()); break;
    case btyp_uint8: view_array(view, Class::uint8_, owner.uint8_array_value()); break;
    case btyp_uint16: view_array(view, Class::uint16_, owner.uint16_array_value()); break;
    case btyp_uint32: view_array(view, Class::uint32_, owner.uint32_array_value()); break;
    case btyp_uint64: view_array(view, Class::uint64_, owner.uint64_array_value()); break;
    case btyp_bool: view_array(view, Class::logical_, owner.bool_array_value()); break;
    case btyp_char:
        view_array(view, Class::char_, owner.char_array_value(), owner.is_sq_string() ? 0 : double_quoted_flag);
        break;
    default: return false;
    }
    return true;
}

Fresh::Fresh(Class cls, std::uint8_t flags, const dim_vector &dims)
    : m_class(cls), m_flags(flags), m_dims(dims), m_data(memory_for(product(dims) * element_bytes(cls, flags)))
{
}

octave_value Fresh::value()
{
    return owning(m_class, m_flags, m_dims, m_data.release());
}

Message::Message(const octave_value &value, std::uint8_t mark)
{
    std::memset(m_envelope, 0, sizeof m_envelope);
    std::memcpy(m_envelope, magic, sizeof magic);
    m_envelope[7] = static_cast<char>(mark);
    Class cls = Class::encoded;
    if (dense(value, m_dense) && m_dense.dims.ndims() <= most_dims) {
        cls = m_dense.cls;
        m_envelope[5] = static_cast<char>(m_dense.flags);
        m_envelope[6] = static_cast<char>(m_dense.dims.ndims());
        for (int i = 0; i < m_dense.dims.ndims(); i++) {
            const std::int64_t extent = m_dense.dims(i);
            std::memcpy(m_envelope + 16 + 8 * i, &extent, sizeof extent);
        }
        m_body = static_cast<const char *>(m_dense.data());
        m_body_bytes = m_dense.bytes();
    } else {
        Encoder(m_encoded).value(value);
        m_body = m_encoded.data();
        m_body_bytes = m_encoded.size();
    }
    m_envelope[4] = static_cast<char>(cls);
    const std::uint64_t length = m_body_bytes;
    std::memcpy(m_envelope + 8, &length, sizeof length);
}

void Message::copy_to(char *to) const
{
    std::memcpy(to, m_envelope, envelope_bytes);
    std::memcpy(to + envelope_bytes, m_body, m_body_bytes);
}

Arrival::Arrival(std::size_t bytes)
{
    if (bytes < envelope_bytes)
        damaged("they end early");
    m_body_bytes = bytes - envelope_bytes;
    m_body = memory_for(m_body_bytes);
}

octave_value Arrival::value()
{
    const Header header(m_envelope);
    if (header.body_bytes != m_body_bytes)
        damaged("they are not as long as they say");
    if (header.cls == Class::encoded)
        return Decoder(m_body.get(), m_body_bytes).whole();
    check_logical(header.cls, m_body.get(), m_body_bytes);
    return owning(header.cls, header.flags, header.dims, m_body.release());
}

std::size_t Arrival::announced(const char *envelope)
{
    return Header(envelope).body_bytes;
}

octave_value decode(const char *bytes, std::size_t length, std::uint8_t *mark)
{
    if (length < envelope_bytes)
        damaged("they end early");
    const Header header(bytes);
    if (header.body_bytes != length - envelope_bytes)
        damaged("they are not as long as they say");
    if (mark)
        *mark = static_cast<std::uint8_t>(bytes[7]);
    const char *body = bytes + envelope_bytes;
    if (header.cls == Class::encoded)
        return Decoder(body, header.body_bytes).whole();
    return copied(header.cls, header.flags, header.dims, body, header.body_bytes);
}
} // namespace limosa
