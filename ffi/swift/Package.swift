// swift-tools-version: 5.9
import PackageDescription

let package = Package(
    name: "Plue",
    platforms: [.macOS(.v13)],
    products: [.library(name: "Plue", targets: ["Plue"])],
    targets: [
        .systemLibrary(name: "CPlue", pkgConfig: "plue"),
        .target(name: "Plue", dependencies: ["CPlue"]),
        .testTarget(name: "PlueTests", dependencies: ["Plue"]),
    ]
)
