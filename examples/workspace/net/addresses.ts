/**
 * Which addresses belong to the public internet. Everything that the special-purpose registries
 * set aside is private here: a server must not be talked into calling its own machine, its own
 * network or its cloud's metadata service.
 *
 * @see https://www.iana.org/assignments/iana-ipv4-special-registry
 * @see https://www.iana.org/assignments/iana-ipv6-special-registry
 * @module
 */

import { isIPv4, isIPv6 } from "node:net";

/** IPv4 networks that are not public, as address and prefix length. */
const PRIVATE_V4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8], // this network
  ["10.0.0.0", 8], // private
  ["100.64.0.0", 10], // carrier-grade NAT; also the metadata service of Alibaba Cloud
  ["127.0.0.0", 8], // loopback
  ["169.254.0.0", 16], // link-local; the metadata service of most clouds
  ["172.16.0.0", 12], // private
  ["192.0.0.0", 24], // protocol assignments
  ["192.0.2.0", 24], // documentation
  ["192.31.196.0", 24], // AS112
  ["192.52.193.0", 24], // AMT
  ["192.88.99.0", 24], // 6to4 relays
  ["192.168.0.0", 16], // private
  ["192.175.48.0", 24], // AS112
  ["198.18.0.0", 15], // benchmarks
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["168.63.129.16", 32], // the host of Azure's virtual machines
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4], // reserved, and broadcast
];

/** IPv6 networks within 2000::/3 that are not public. All outside 2000::/3 is private too. */
const PRIVATE_V6: readonly (readonly [string, number])[] = [
  ["2001::", 23], // protocol assignments: Teredo, benchmarks, ORCHID
  ["2001:db8::", 32], // documentation
  ["2620:4f:8000::", 48], // AS112
  ["3fff::", 20], // documentation
];

/** Whether an IP address, as text, is of the public internet. What is no address is not. */
export function isPublicAddress(address: string): boolean {
  // A zone ("fe80::1%eth0") only goes with addresses that are not public.
  if (isIPv4(address)) return isPublicV4(parseV4(address));
  return isIPv6(address) && !address.includes("%") && isPublicV6(parseV6(address));
}

function isPublicV4(address: number): boolean {
  return !PRIVATE_V4.some(([network, length]) => {
    const mask = length === 0 ? 0 : (0xffffffff << (32 - length)) >>> 0;
    return ((address & mask) >>> 0) === parseV4(network);
  });
}

function isPublicV6(groups: readonly number[]): boolean {
  const [first = 0, second = 0] = groups;
  const v4 = (index: number) => ((groups[index] ?? 0) * 0x10000) + (groups[index + 1] ?? 0);
  const begins = (...start: readonly number[]) =>
    start.every((group, index) => groups[index] === group);
  // These carry an IPv4 address, which is where the packets go: mapped, NAT64, 6to4.
  if (begins(0, 0, 0, 0, 0, 0xffff)) return isPublicV4(v4(6));
  if (begins(0x64, 0xff9b, 0, 0, 0, 0)) return isPublicV4(v4(6));
  if (first === 0x2002) return isPublicV4(second * 0x10000 + (groups[2] ?? 0));
  if ((first & 0xe000) !== 0x2000) return false;
  return !PRIVATE_V6.some(([network, length]) => hasPrefix(groups, parseV6(network), length));
}

function hasPrefix(
  groups: readonly number[],
  network: readonly number[],
  length: number,
): boolean {
  for (let index = 0, left = length; left > 0; index++, left -= 16) {
    const mask = left >= 16 ? 0xffff : (0xffff << (16 - left)) & 0xffff;
    if (((groups[index] ?? 0) & mask) !== ((network[index] ?? 0) & mask)) return false;
  }
  return true;
}

function parseV4(address: string): number {
  return address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}

/** The eight groups of an address that is known to be one. */
function parseV6(address: string): readonly number[] {
  const [head = "", tail] = address.split("::");
  const front = groupsOf(head);
  if (tail === undefined) return front;
  const back = groupsOf(tail);
  return [...front, ...new Array<number>(8 - front.length - back.length).fill(0), ...back];
}

function groupsOf(text: string): readonly number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (!group.includes(".")) return [parseInt(group, 16)];
    const v4 = parseV4(group);
    return [Math.floor(v4 / 0x10000), v4 % 0x10000];
  });
}
