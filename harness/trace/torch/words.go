package torch

// word is a known string: a key, or a value of a key.
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
	keyConf
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
	wordConf
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

// words holds the spelling of each word.
var words = [...]string{
	keySegments: "segments", keyTraces: "device_traces", keySettings: "allocator_settings",
	keyAnnotations: "external_annotations", keyAction: "action", keyAddr: "addr", keyDeviceFree: "device_free",
	keySize: "size", keyStream: "stream", keyTime: "time_us", keyFrames: "frames", keyCategory: "category",
	keyConf: "settings", keyPool: "pool_id", keySegmentPool: "segment_pool_id", keyDevice: "device", keyAddress: "address",
	keyTotal: "total_size", keyAllocated: "allocated_size", keyActive: "active_size",
	keyRequested: "requested_size", keyType: "segment_type", keyExpandable: "is_expandable", keyBlocks: "blocks",
	keyState: "state", keyHistory: "history", keyRealSize: "real_size", keyFile: "filename", keyLine: "line",
	keyName: "name", keyStage: "stage",
	wordAlloc: "alloc", wordFreeRequested: "free_requested", wordFreeCompleted: "free_completed",
	wordSegmentAlloc: "segment_alloc", wordSegmentFree: "segment_free", wordSegmentMap: "segment_map",
	wordSegmentUnmap: "segment_unmap", wordOOM: "oom", wordSnapshot: "snapshot", wordConf: "conf",
	wordFree:      "free",
	wordAllocated: "active_allocated", wordPending: "active_pending_free", wordAwaiting: "active_awaiting_free",
	wordInactive: "inactive", wordSmall: "small", wordLarge: "large", wordStart: "START", wordEnd: "END",
}

// keySet is a set of keys.
type keySet uint64

func (h keySet) with(w word) keySet {
	if w >= lastKey {
		return h
	}
	return h | 1<<w
}

// all reports whether the set contains every key of other, any whether it contains at least one.
func (h keySet) all(other keySet) bool { return h&other == other }
func (h keySet) any(other keySet) bool { return h&other != 0 }

// rowKind is the kind of a dictionary.
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

// article returns the name of a row with its article, for error messages.
func (r rowKind) article() string {
	if r == entryRow || r == annotationRow {
		return "an " + rowNames[r]
	}
	return "a " + rowNames[r]
}

// rowNames holds the names of the rows.
var rowNames = [...]string{
	frameRow: "frame", entryRow: "entry", blockRow: "block", segmentRowKind: "segment",
	annotationRow: "annotation", snapshotRow: "snapshot", settingsRow: "allocator_settings",
}

// The keys that identify the kind of a dictionary.
const (
	frameKeys      keySet = 1<<keyFile | 1<<keyLine | 1<<keyName
	entryKeys      keySet = 1 << keyAction
	entryAddrs     keySet = 1<<keyAddr | 1<<keyDeviceFree
	blockKeys      keySet = 1<<keySize | 1<<keyState
	segmentKeys    keySet = 1<<keyTotal | 1<<keyBlocks
	annotationKeys keySet = 1<<keyName | 1<<keyStage
	snapshotKeys   keySet = 1<<keySegments | 1<<keyTraces
)

// kindOf returns the kind of a dictionary with these keys.
func (h keySet) kindOf() rowKind {
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
