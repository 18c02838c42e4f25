package boot

import (
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/bootargs"
)

// kernelArgs is host_kernel_args.
func kernelArgs() settingType {
	return settingType{
		schema: &schema.Resource{
			Type: "host_kernel_args", Setting: true, Survives: true,
			Description: "Arguments on the kernel's command line, beside those that are there: through GRUB (update-grub with a file of its own in /etc/default/grub.d, or grub-mkconfig), grubby, or the boot loader entries of systemd-boot. They take effect with a reboot, which is made once for all that needs one. Destroy takes them out again, and reboots when the running kernel has them.",
			After:       []string{"host_package"},
			Example: `resource "host_kernel_args" "dut" {
  args = ["intel_iommu=on", "iommu=pt"]
}`,
			Block: schema.Block{Attributes: map[string]*schema.Attribute{
				"args": {Type: cty.List(cty.String), Required: true, Validate: validArgs,
					Description: "The arguments, in order: [\"intel_iommu=on\", \"iommu=pt\"] (Documentation/admin-guide/kernel-parameters.txt of Linux). They win over others of the same name while they are there. Letters, digits and _ . , : = + @ / % - are allowed; root, init, rdinit, initrd, ro and rw are refused."},
				"active": activeAttribute(),
			}},
		},
		at: func(i int) cty.Path { return cty.GetAttrPath("args").IndexInt(i) },
		args: func(v cty.Value, _ *providers.Facts) ([]string, error) {
			l := v.GetAttr("args")
			if !l.IsWhollyKnown() || l.IsNull() {
				return nil, errors.New("the arguments are not known")
			}
			var out []string
			for _, e := range l.AsValueSlice() {
				out = append(out, e.AsString())
			}
			return out, nil
		},
		found: func(prior cty.Value, args []string) cty.Value {
			out := prior.AsValueMap()
			list := cty.ListValEmpty(cty.String)
			var values []cty.Value
			for _, a := range args {
				values = append(values, cty.StringVal(a))
			}
			if len(values) > 0 {
				list = cty.ListVal(values)
			}
			out["args"] = list
			return cty.ObjectVal(out)
		},
	}
}

func validArgs(v cty.Value) error {
	if v.LengthInt() == 0 {
		return errors.New("the list is empty")
	}
	seen := map[string]bool{}
	for _, e := range v.AsValueSlice() {
		if !e.IsKnown() {
			continue
		}
		if e.IsNull() {
			return errors.New("the list holds a null")
		}
		if err := bootargs.Valid(e.AsString()); err != nil {
			return err
		}
		if k := bootargs.Key(e.AsString()); !bootargs.Many(k) {
			if seen[k] {
				return fmt.Errorf("%s is there twice, and the kernel takes the last one only", k)
			}
			seen[k] = true
		}
	}
	return nil
}
