removed {
  from = ovs_bridge.old
}
