/** The last opening; the variable is the process's, so that there is one at a time. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Opens a GPU while the environment names a card, by PCI address, that Mesa's device-select layer puts first.
 * WebGPU itself has no way to take one of two equal cards. The variable is read when the thread of the GPU
 * makes its instance.
 *
 */
export function withCard<Opened>(address: string, open: () => Promise<Opened>): Promise<Opened> {
  const opening = last.then(async () => {
    const before = process.env.DRI_PRIME;
    process.env.DRI_PRIME = `pci-${address.replaceAll(/[:.]/g, '_')}`;
    try {
      return await open();
    } finally {
      if (before === undefined) delete process.env.DRI_PRIME;
      else process.env.DRI_PRIME = before;
    }
  });
  last = opening.catch(() => undefined);
  return opening;
}
