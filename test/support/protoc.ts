/** The compiler of Protocol Buffers. */
import { execFileSync } from 'node:child_process';

/** Writes what files of a folder declare to a binary `FileDescriptorSet`. */
export function writeDescriptorSet(folder: string, files: readonly string[], to: string): void {
  execFileSync('protoc', ['-I', folder, '--descriptor_set_out', to, ...files]);
}
