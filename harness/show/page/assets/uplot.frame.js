const uPlot = ((Intl) => {
/* uPlot */
return uPlot;
})({
NumberFormat: function (...of) { return { format: (v) => new globalThis.Intl.NumberFormat(...of).format(v) }; },
DateTimeFormat: function () { return { resolvedOptions: () => ({}) }; },
});
