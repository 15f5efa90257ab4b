package planted

// slabbuddyBugs returns bugs of the slab-buddy, and of its parts seen from the whole.
func slabbuddyBugs() []Bug {
	return []Bug{
		{ID: "slabbuddy/block-to-slab", Setting: slabbuddySmall, Breaks: []string{"I22"}, Minimal: "a 1024 align=1024",
			Doc: "a request of just the smallest buddy block goes to the slab"},
		{ID: "slabbuddy/region-to-buddy", Setting: slabbuddySmall, Breaks: []string{"I22"}, Minimal: "a 32768 align=65536",
			Doc: "a request of just a region goes to the buddy"},
		{ID: "slabbuddy/last-byte-up", Setting: slabbuddySmall, Breaks: []string{"R1"}, Minimal: "a 1023",
			Doc: "the largest request for the slab goes to the buddy"},
		{ID: "slabbuddy/last-byte-to-device", Setting: slabbuddySmall, Breaks: []string{"R1"}, Minimal: "a 32767",
			Doc: "the largest request for the buddy goes to the device"},
		{ID: "slabbuddy/owners-swapped", Setting: slabbuddySmall, Breaks: []string{"I2", "R2"}, Minimal: "a 1",
			Doc: "a region of the slab is noted as one of the buddy"},
		{ID: "slabbuddy/direct-kept", Setting: slabbuddySmall, Breaks: []string{"R3"}, Minimal: "a 32768",
			Doc: "a direct block whose region went back stays live"},
		{ID: "slabbuddy/device-error-passed-on", Setting: slabbuddySmall, Breaks: []string{"I22"}, Minimal: "a 32768", Judge: ByFaults, Nth: 1,
			Doc: "the device's own error is the answer to a request"},
		{ID: "slabbuddy/refusal-uncounted", Setting: slabbuddySmall, Breaks: []string{"I18"}, Minimal: "fault 1\na 1",
			Doc: "a part that runs out of memory is not counted"},
		{ID: "slabbuddy/frees-what-was-asked", Setting: slabbuddySmall, Breaks: []string{"I16", "R6"}, Minimal: "a 1",
			Doc: "a free takes the bytes asked for, not those granted, from the allocated ones"},
		{ID: "slab/head-left", Setting: slabbuddySmall, Breaks: []string{"I14", "R5", "S2"}, Minimal: "a 1",
			Doc: "a freed block of the slab part stays marked as the start of one"},
		{ID: "buddy/head-left", Setting: slabbuddySmall, Breaks: []string{"R5", "U3"}, Minimal: "a 1024",
			Doc: "a freed run of the buddy part stays marked as the start of a block"},
	}
}
