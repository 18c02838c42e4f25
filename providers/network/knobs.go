package network

import (
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// knob is a setting of a driver that ethtool(8) shows and sets.
type knob struct {
	attr  string
	kind  string // "ring", "channels", "pause", "coalesce"
	shown string // as ethtool prints it
	word  string // as ethtool takes it
	flag  bool   // on or off; else a number
	unit  string
	least int64 // of a number
}

// value is what ethtool shows as an attribute's value; null for what there is not.
func (k knob) value(shown string) cty.Value {
	if k.flag {
		if shown != "on" && shown != "off" {
			return cty.NullVal(cty.Bool)
		}
		return cty.BoolVal(shown == "on")
	}
	n, err := strconv.ParseInt(shown, 10, 64)
	if err != nil {
		return cty.NullVal(cty.Number)
	}
	return cty.NumberIntVal(n)
}

// spelled is a configured value as ethtool takes it; "" for null and unknown.
func (k knob) spelled(v cty.Value) string {
	switch {
	case v.IsNull() || !v.IsKnown():
		return ""
	case k.flag:
		return onOff(v.True())
	}
	return v.AsBigFloat().Text('f', 0)
}

// knobs follow ethtool(8): -g and -G, -l and -L, -a and -A, -c and -C.
func knobs() []knob {
	return []knob{
		{attr: "ring_rx", kind: "ring", shown: "RX", word: "rx", unit: "descriptors of each receive queue", least: 1},
		{attr: "ring_tx", kind: "ring", shown: "TX", word: "tx", unit: "descriptors of each transmit queue", least: 1},
		{attr: "channels_combined", kind: "channels", shown: "Combined", word: "combined", unit: "queue pairs", least: 1},
		{attr: "channels_rx", kind: "channels", shown: "RX", word: "rx", unit: "receive queues, of a driver that has them apart", least: 1},
		{attr: "channels_tx", kind: "channels", shown: "TX", word: "tx", unit: "transmit queues, of a driver that has them apart", least: 1},
		{attr: "pause_autoneg", kind: "pause", shown: "Autonegotiate", word: "autoneg", flag: true, unit: "Whether flow control is negotiated with the other end of the cable"},
		{attr: "pause_rx", kind: "pause", shown: "RX", word: "rx", flag: true, unit: "Whether the NIC stops sending when it is asked to by pause frames (IEEE 802.3x). For throughput tests: false"},
		{attr: "pause_tx", kind: "pause", shown: "TX", word: "tx", flag: true, unit: "Whether the NIC sends pause frames when its queues are full. For throughput tests: false, since losses show otherwise at the sender alone"},
		{attr: "coalesce_adaptive_rx", kind: "coalesce", word: "adaptive-rx", flag: true, unit: "Whether the driver adapts the delay of receive interrupts by itself"},
		{attr: "coalesce_adaptive_tx", kind: "coalesce", word: "adaptive-tx", flag: true, unit: "Whether the driver adapts the delay of transmit interrupts by itself"},
		{attr: "coalesce_rx_usecs", kind: "coalesce", shown: "rx-usecs", word: "rx-usecs", unit: "microseconds that a receive interrupt waits for more frames"},
		{attr: "coalesce_rx_frames", kind: "coalesce", shown: "rx-frames", word: "rx-frames", unit: "frames after which a receive interrupt waits no longer"},
		{attr: "coalesce_tx_usecs", kind: "coalesce", shown: "tx-usecs", word: "tx-usecs", unit: "microseconds that a transmit interrupt waits for more frames"},
		{attr: "coalesce_tx_frames", kind: "coalesce", shown: "tx-frames", word: "tx-frames", unit: "frames after which a transmit interrupt waits no longer"},
	}
}
