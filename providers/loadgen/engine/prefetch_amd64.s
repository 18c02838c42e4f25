#include "textflag.h"

// PREFETCHW is 0F 0D /1 (AMD64 Architecture Programmer's Manual, volume 3); the assembler has no name for it.

// func prefetchForWrite(first unsafe.Pointer, n int, size, last uintptr)
TEXT ·prefetchForWrite(SB), NOSPLIT, $0-32
	MOVQ first+0(FP), AX
	MOVQ n+8(FP), CX
	MOVQ size+16(FP), SI
	MOVQ last+24(FP), DX
	TESTQ CX, CX
	JLE  done

loop:
	MOVQ (AX), BX
	BYTE $0x0f; BYTE $0x0d; BYTE $0x0b             // PREFETCHW (BX)
	BYTE $0x0f; BYTE $0x0d; BYTE $0x0c; BYTE $0x13 // PREFETCHW (BX)(DX*1)
	ADDQ SI, AX
	DECQ CX
	JNZ  loop

done:
	RET

// func prefetchForRead(first unsafe.Pointer, n int)
TEXT ·prefetchForRead(SB), NOSPLIT, $0-16
	MOVQ first+0(FP), AX
	MOVQ n+8(FP), CX
	TESTQ CX, CX
	JLE  done

loop:
	MOVQ (AX), BX
	ADDQ 8(AX), BX
	PREFETCHT0 -1(BX)
	PREFETCHT0 -18(BX)
	ADDQ $24, AX
	DECQ CX
	JNZ  loop

done:
	RET
