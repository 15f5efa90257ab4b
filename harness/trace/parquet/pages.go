package parquet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/vramyard/vramyard/internal/budget"
)

// The Parquet library decodes pages too, but allocates any size that a page claims. These limits
// exceed everything that Write produces.
const (
	// maxPage is the maximum size of a page in bytes, compressed or not.
	maxPage = 2 * dictionaryBytes
	// maxHead is the maximum size of a page header in bytes, which has a dozen numbers.
	maxHead = 1 << 16
	// maxValues is the maximum number of values in a page.
	maxValues = 16 * groupRows
)

// pages reads the pages of one column in a row group. It reuses its buffers.
type pages struct {
	chunk   *format.ColumnMetaData
	in      *bufio.Reader
	decoder *zstd.Decoder
	memory  *budget.Budget // budget for the buffers of all columns
	nulls   bool           // values may be absent, so pages have definition levels
	packed  []byte         // the page as stored
	plain   []byte         // decompressed
}

// page is the content of a page: the values of a dictionary, dictionary indexes, or values.
type page struct {
	dictionary bool
	indexes    bool
	delta      bool // delta-encoded integers
	count      int
	levels     []byte // definition levels, if values may be absent: one for each of count
	data       []byte
	memory     *budget.Budget
}

// newPages returns a reader that decompresses with decoder. It must be opened on a column before
// use.
func newPages(decoder *zstd.Decoder, memory *budget.Budget) *pages {
	return &pages{in: bufio.NewReaderSize(nil, maxHead), decoder: decoder, memory: memory}
}

// newDecoder returns a decompressor for pages.
func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPage))
}

// open starts a column of a row group.
func (p *pages) open(r io.ReaderAt, chunk *format.ColumnMetaData) error {
	if chunk.Codec != format.Zstd && chunk.Codec != format.Uncompressed {
		return fmt.Errorf("compressed with %v: want zstd", chunk.Codec)
	}
	start := chunk.DataPageOffset
	if o := chunk.DictionaryPageOffset; o != 0 {
		start = o
	}
	if start < 0 || chunk.TotalCompressedSize < 0 {
		return errors.New("lies outside of the file")
	}
	p.chunk = chunk
	p.in.Reset(io.NewSectionReader(r, start, chunk.TotalCompressedSize))
	return nil
}

// next returns the next page. Its data is valid until the next call.
func (p *pages) next() (page, error) {
	if head, err := p.in.Peek(maxHead); err != nil && err != io.EOF {
		return page{}, err
	} else if _, ok := checkThrift(head); !ok && len(head) > 0 { // the library would allocate any claimed size
		return page{}, errHead
	}
	var protocol thrift.CompactProtocol
	var h format.PageHeader
	if err := thrift.NewDecoder(protocol.NewReader(p.in)).Decode(&h); err != nil {
		if errors.Is(err, io.EOF) {
			return page{}, errShort
		}
		return page{}, fmt.Errorf("head of a page: %w", err)
	}
	if h.CompressedPageSize < 0 || h.CompressedPageSize > maxPage || h.UncompressedPageSize < 0 ||
		h.UncompressedPageSize > maxPage {
		return page{}, fmt.Errorf("a page of %d bytes, %d before it was compressed: want at most %d",
			h.CompressedPageSize, h.UncompressedPageSize, maxPage)
	}
	var err error
	if p.packed, err = sized(p.memory, p.packed, int(h.CompressedPageSize)); err != nil {
		return page{}, err
	}
	if _, err := io.ReadFull(p.in, p.packed); err != nil {
		return page{}, errTruncated
	}
	if sum := crc32.ChecksumIEEE(p.packed); h.CRC != 0 && uint32(h.CRC) != sum {
		return page{}, fmt.Errorf("a page has the checksum %08x: want %08x", sum, uint32(h.CRC))
	}
	out, packed, err := describe(&h, p.nulls)
	if err != nil {
		return page{}, err
	}
	inFront, err := p.levelsInFront(&h)
	if err != nil {
		return page{}, err
	}
	if out.count < 0 || out.count > maxValues {
		return page{}, fmt.Errorf("a page of %d values: want at most %d", out.count, maxValues)
	}
	out.levels, out.data, out.memory = p.packed[:inFront], p.packed[inFront:], p.memory
	if packed && p.chunk.Codec == format.Zstd {
		if p.plain, err = sized(p.memory, p.plain, int(h.UncompressedPageSize)); err != nil {
			return page{}, err
		}
		if p.plain, err = p.decoder.DecodeAll(out.data, p.plain[:0]); err != nil {
			return page{}, fmt.Errorf("zstd data is corrupt: %w", err)
		}
		out.data = p.plain
	}
	if n := inFront + len(out.data); n != int(h.UncompressedPageSize) {
		return page{}, fmt.Errorf("a page of %d bytes: want %d", n, h.UncompressedPageSize)
	}
	if p.nulls && h.Type == format.DataPage {
		return out, out.cutLevels()
	}
	return out, nil
}

// levelsInFront returns the bytes of definition levels before the data of a page, which are not
// compressed.
func (p *pages) levelsInFront(h *format.PageHeader) (int, error) {
	if h.Type != format.DataPageV2 {
		return 0, nil
	}
	n := int(h.DataPageHeaderV2.V.DefinitionLevelsByteLength)
	if n < 0 || n > len(p.packed) {
		return 0, errValues
	}
	return n, nil
}

// cutLevels moves the definition levels from the data of a page of version 1, which begin with
// their size.
func (p *page) cutLevels() error {
	if len(p.data) < 4 {
		return errValues
	}
	n := int64(binary.LittleEndian.Uint32(p.data))
	if n > int64(len(p.data)-4) {
		return errValues
	}
	p.levels, p.data = p.data[4:4+n], p.data[4+n:]
	return nil
}

// errHead is the error for a page header that is corrupt or too large.
var errHead = fmt.Errorf("the head of a page is corrupt or has more than %d bytes", maxHead)

// describe returns the page described by a header, and whether its data may be compressed. nulls
// allows values to be absent.
func describe(h *format.PageHeader, nulls bool) (p page, packed bool, err error) {
	var encoding format.Encoding
	switch {
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		p.dictionary, p.count, packed = true, int(h.DictionaryPageHeader.V.NumValues), true
		encoding = h.DictionaryPageHeader.V.Encoding
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		v := &h.DataPageHeaderV2.V
		p.count, encoding, packed = int(v.NumValues), v.Encoding, !v.IsCompressed.Valid || v.IsCompressed.V
		if !nulls && (v.NumNulls != 0 || v.DefinitionLevelsByteLength != 0) || v.RepetitionLevelsByteLength != 0 {
			return p, false, errors.New("a page with nulls or levels")
		}
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		p.count, encoding, packed = int(h.DataPageHeader.V.NumValues), h.DataPageHeader.V.Encoding, true
	default:
		return p, false, fmt.Errorf("a page of type %v", h.Type)
	}
	switch {
	case encoding == format.Plain:
	case encoding == format.DeltaBinaryPacked && !p.dictionary:
		p.delta = true
	case encoding == format.RLEDictionary && !p.dictionary:
		p.indexes = true
	default:
		return p, false, fmt.Errorf("a page that is encoded as %v", encoding)
	}
	return p, packed, nil
}

// sized returns a slice of n elements, reusing s if it is large enough.
func sized[T any](memory *budget.Budget, s []T, n int) ([]T, error) {
	if n <= cap(s) {
		return s[:n], nil
	}
	if err := memory.Take(budget.SizeOf[T](n)); err != nil {
		return s, err
	}
	budget.Release(memory, s)
	return make([]T, n), nil
}

// numbers decodes a page of integers.
func (p page) numbers(dst []int64) (_ []int64, err error) {
	if dst, err = sized(p.memory, dst, p.count); err != nil {
		return nil, err
	}
	if !p.delta {
		if len(p.data) != 8*p.count {
			return nil, errValues
		}
		for k := range dst {
			dst[k] = int64(binary.LittleEndian.Uint64(p.data[8*k:]))
		}
		return dst, nil
	}
	// The encoding begins with the block size, the miniblocks per block and the number of values.
	_, a := binary.Uvarint(p.data)
	_, b := binary.Uvarint(p.data[max(a, 0):])
	n, c := binary.Uvarint(p.data[max(a, 0)+max(b, 0):])
	if a <= 0 || b <= 0 || c <= 0 || n != uint64(p.count) {
		return nil, errValues
	}
	var e delta.BinaryPackedEncoding
	values, err := e.DecodeInt64(dst, p.data)
	if err != nil || len(values) != p.count {
		return nil, errValues
	}
	return values, nil
}

var errValues = errors.New("the values of a page contradict its header")

// run returns the index, into a dictionary of up to most values, that a page repeats in a single
// run. It returns false for any other page.
func (p page) run(most int) (rank uint32, ok bool) {
	if p.count == 0 || len(p.data) == 0 || p.data[0] > 32 {
		return 0, false
	}
	head, size := binary.Uvarint(p.data[1:])
	bytes := (int(p.data[0]) + 7) / 8
	if size <= 0 || head&1 != 0 || head>>1 < uint64(p.count) || head>>1 > maxValues || len(p.data) < 1+size+bytes {
		return 0, false
	}
	var one [1]uint32
	fill(one[:], p.data[1+size:][:bytes])
	return one[0], int(one[0]) < most
}

// ranks decodes a page of indexes into a dictionary of up to most values: run-length encoded, or
// bit-packed in groups of eight.
func (p page) ranks(dst []uint32, most int) (_ []uint32, err error) {
	if dst, err = sized(p.memory, dst, p.count); err != nil {
		return nil, err
	}
	if p.count == 0 {
		return dst, nil
	}
	if len(p.data) == 0 || p.data[0] > 32 {
		return nil, errValues
	}
	width, data, done := int(p.data[0]), p.data[1:], 0
	for done < len(dst) {
		head, size := binary.Uvarint(data)
		if size <= 0 || head>>1 == 0 || head>>1 > maxValues {
			return nil, errValues
		}
		data = data[size:]
		n, bytes := int(head>>1), (width+7)/8
		if head&1 != 0 {
			n, bytes = 8*n, n*width
		}
		if bytes > len(data) {
			return nil, errValues
		}
		to := dst[done:min(done+n, len(dst))]
		if head&1 != 0 {
			unpack(to, data[:bytes], width)
		} else {
			fill(to, data[:bytes])
		}
		data, done = data[bytes:], done+len(to)
	}
	for _, r := range dst {
		if int(r) >= most {
			return nil, errValues
		}
	}
	return dst, nil
}

// fill sets all of dst to the little-endian number in data.
func fill(dst []uint32, data []byte) {
	v := uint32(0)
	for i, b := range data {
		v |= uint32(b) << (8 * i)
	}
	for k := range dst {
		dst[k] = v
	}
}

// unpack decodes numbers of width bits, at most 32, least significant bits first.
func unpack(dst []uint32, data []byte, width int) {
	mask := uint64(1)<<width - 1
	for k := range dst {
		at := k * width
		from := data[at/8:]
		var have uint64
		if len(from) >= 8 {
			have = binary.LittleEndian.Uint64(from)
		} else {
			for i, b := range from {
				have |= uint64(b) << (8 * i)
			}
		}
		dst[k] = uint32(have >> (at % 8) & mask)
	}
}

// texts calls f with each text of a page without a dictionary.
func (p page) texts(f func(k int, text []byte)) error {
	data := p.data
	for k := range p.count {
		if len(data) < 4 {
			return errValues
		}
		n := uint64(binary.LittleEndian.Uint32(data))
		if data = data[4:]; n > uint64(len(data)) {
			return errValues
		}
		f(k, data[:n])
		data = data[n:]
	}
	if len(data) > 0 {
		return errValues
	}
	return nil
}
