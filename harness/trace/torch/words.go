package torch

// word is a string that means something here: a key, or what a key has as its value.
type word uint8

// The words.
const (
	noWord word = iota
	keySegments
	keyTraces
	keySettings
	keyAnnotations
	keyAction
	keyAddr
	keyDeviceFree
	keySize
	keyStream
	keyTime
	keyFrames
	keyCategory
	keyPool
	keySegmentPool
	keyDevice
	keyAddress
	keyTotal
	keyAllocated
	keyActive
	keyRequested
	keyType
	keyExpandable
	keyBlocks
	keyState
	keyHistory
	keyRealSize
	keyFile
	keyLine
	keyName
	keyStage
	lastKey

	wordAlloc word = lastKey + iota
	wordFreeRequested
	wordFreeCompleted
	wordSegmentAlloc
	wordSegmentFree
	wordSegmentMap
	wordSegmentUnmap
	wordOOM
	wordSnapshot
	wordFree
	wordAllocated
	wordPending
	wordAwaiting
	wordInactive
	wordSmall
	wordLarge
	wordStart
	wordEnd
)

// words spells the words.
var words = [...]string{
	keySegments: "segments", keyTraces: "device_traces", keySettings: "allocator_settings",
	keyAnnotations: "external_annotations", keyAction: "action", keyAddr: "addr", keyDeviceFree: "device_free",
	keySize: "size", keyStream: "stream", keyTime: "time_us", keyFrames: "frames", keyCategory: "category",
	keyPool: "pool_id", keySegmentPool: "segment_pool_id", keyDevice: "device", keyAddress: "address",
	keyTotal: "total_size", keyAllocated: "allocated_size", keyActive: "active_size",
	keyRequested: "requested_size", keyType: "segment_type", keyExpandable: "is_expandable", keyBlocks: "blocks",
	keyState: "state", keyHistory: "history", keyRealSize: "real_size", keyFile: "filename", keyLine: "line",
	keyName: "name", keyStage: "stage",
	wordAlloc: "alloc", wordFreeRequested: "free_requested", wordFreeCompleted: "free_completed",
	wordSegmentAlloc: "segment_alloc", wordSegmentFree: "segment_free", wordSegmentMap: "segment_map",
	wordSegmentUnmap: "segment_unmap", wordOOM: "oom", wordSnapshot: "snapshot", wordFree: "free",
	wordAllocated: "active_allocated", wordPending: "active_pending_free", wordAwaiting: "active_awaiting_free",
	wordInactive: "inactive", wordSmall: "small", wordLarge: "large", wordStart: "START", wordEnd: "END",
}

// has is a set of keys.
type has uint64

// with returns the set with a key.
func (h has) with(w word) has {
	if w >= lastKey {
		return h
	}
	return h | 1<<w
}

// all reports whether every key of other is there, any whether one is.
func (h has) all(other has) bool { return h&other == other }
func (h has) any(other has) bool { return h&other != 0 }

// rowKind is what a dictionary is.
type rowKind uint8

const (
	frameRow rowKind = iota
	entryRow
	blockRow
	segmentRowKind
	annotationRow
	snapshotRow
	settingsRow
	otherRow
)

// article returns the name of a row for messages.
func (r rowKind) article() string {
	if r == entryRow || r == annotationRow {
		return "an " + rowNames[r]
	}
	return "a " + rowNames[r]
}

// rowNames says what a row is.
var rowNames = [...]string{
	frameRow: "frame", entryRow: "entry", blockRow: "block", segmentRowKind: "segment",
	annotationRow: "annotation", snapshotRow: "snapshot", settingsRow: "allocator_settings",
}

// The keys that tell what a dictionary is.
const (
	frameKeys      has = 1<<keyFile | 1<<keyLine | 1<<keyName
	entryKeys      has = 1 << keyAction
	entryAddrs     has = 1<<keyAddr | 1<<keyDeviceFree
	blockKeys      has = 1<<keySize | 1<<keyState
	segmentKeys    has = 1<<keyTotal | 1<<keyBlocks
	annotationKeys has = 1<<keyName | 1<<keyStage
	snapshotKeys   has = 1<<keySegments | 1<<keyTraces
)

// kindOf tells what a dictionary with these keys is.
func (h has) kindOf() rowKind {
	switch {
	case h.all(entryKeys) && h.any(entryAddrs):
		return entryRow
	case h.all(frameKeys):
		return frameRow
	case h.all(blockKeys):
		return blockRow
	case h.all(segmentKeys):
		return segmentRowKind
	case h.all(annotationKeys):
		return annotationRow
	case h.any(snapshotKeys):
		return snapshotRow
	}
	return otherRow
}
