/** What a kernel's preparation keeps with a block goes with it: buffers, or lists and objects of them. */
export function destroyBuffers(value: unknown): void {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return;
  if ('destroy' in value && typeof value.destroy === 'function') value.destroy();
  else for (const part of Object.values(value)) destroyBuffers(part);
}
