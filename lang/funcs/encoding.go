package funcs

import (
	"crypto/md5"  //nolint:gosec // for names and comparison, as in Terraform, not for security
	"crypto/sha1" //nolint:gosec // see above
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty/function"
)

func base64EncodeFunc() function.Function {
	return stringFunc("Encodes the string's UTF-8 bytes in base64.", "str", func(s string) (string, error) {
		return base64.StdEncoding.EncodeToString([]byte(s)), nil
	})
}

func base64DecodeFunc() function.Function {
	return stringFunc("Decodes base64 to a string, which must be UTF-8.", "str", func(s string) (string, error) {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return "", fmt.Errorf("not base64: %w", err)
		}
		if !utf8.Valid(b) {
			return "", errors.New("the decoded bytes are not a text in UTF-8")
		}
		return string(b), nil
	})
}

func urlEncodeFunc() function.Function {
	return stringFunc("Escapes the string for use in a URL's query.", "str", func(s string) (string, error) { return url.QueryEscape(s), nil })
}

func urlDecodeFunc() function.Function {
	return stringFunc("Undoes urlencode.", "str", url.QueryUnescape)
}

// hashes by function name: how the digest of bytes is printed.
func digest(name string, b []byte) string {
	switch name {
	case "md5":
		sum := md5.Sum(b) //nolint:gosec // see above
		return hex.EncodeToString(sum[:])
	case "sha1":
		sum := sha1.Sum(b) //nolint:gosec // see above
		return hex.EncodeToString(sum[:])
	case "sha256":
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	case "sha512":
		sum := sha512.Sum512(b)
		return hex.EncodeToString(sum[:])
	case "base64sha256":
		sum := sha256.Sum256(b)
		return base64.StdEncoding.EncodeToString(sum[:])
	case "base64sha512":
		sum := sha512.Sum512(b)
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	panic("funcs: no hash is called " + name)
}

func hashFunc(name string) function.Function {
	return stringFunc("Returns the "+hashLabel(name)+" digest of the string's UTF-8 bytes"+hashForm(name)+".", "str", func(s string) (string, error) {
		return digest(name, []byte(s)), nil
	})
}

func hashLabel(name string) string {
	return map[string]string{"md5": "MD5", "sha1": "SHA-1", "sha256": "SHA-256", "sha512": "SHA-512", "base64sha256": "SHA-256", "base64sha512": "SHA-512"}[name]
}

func hashForm(name string) string {
	if name == "base64sha256" || name == "base64sha512" {
		return ", in base64"
	}
	return ", in hexadecimal"
}
