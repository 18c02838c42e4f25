#include "textflag.h"

// func prefetchForWrite(first unsafe.Pointer, n int, size, last uintptr)
TEXT ·prefetchForWrite(SB), NOSPLIT, $0-32
	MOVD first+0(FP), R0
	MOVD n+8(FP), R1
	MOVD size+16(FP), R2
	MOVD last+24(FP), R3
	CMP  $0, R1
	BLE  done

loop:
	MOVD (R0), R4
	PRFM (R4), PSTL1KEEP
	ADD  R3, R4, R4
	PRFM (R4), PSTL1KEEP
	ADD  R2, R0, R0
	SUBS $1, R1, R1
	BNE  loop

done:
	RET

// func prefetchForRead(first unsafe.Pointer, n int)
TEXT ·prefetchForRead(SB), NOSPLIT, $0-16
	MOVD first+0(FP), R0
	MOVD n+8(FP), R1
	CMP  $0, R1
	BLE  done

loop:
	MOVD (R0), R4
	MOVD 8(R0), R5
	ADD  R5, R4, R4
	SUB  $1, R4, R5
	PRFM (R5), PLDL1KEEP
	SUB  $18, R4, R5
	PRFM (R5), PLDL1KEEP
	ADD  $24, R0, R0
	SUBS $1, R1, R1
	BNE  loop

done:
	RET
