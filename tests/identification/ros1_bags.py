"""ROS 1 bags written by `rosbags` 0.11.9: five joint states and one string each, compressed with lzma."""

import base64
import lzma

_PACKED = {
    "none": (
        "XQAAAAT//////////wARlIXlVcjsnm6ozlo1Aruz9C5JpdpW+jHl9kW18rV7LOmuiOrgFkyYD5UG+JiztzGCOfM6KGnBQLTfoQ0F6I/tjmWsJ1"
        "VzcwF4szArewo0/IAFcBwbrH5lqxxhjXoNS6Fw8ZNkJlWexiwVflydQu2Wix/cSP2w8gQGZYcdzYTFDElKvYNO3mOr34TOvl04CFL2VpnuGur4"
        "zswKeNtJlLjI5I1O8qFqbdp5W4KVjlYm450Pv9Vala1HNYiBxNNGFpED0tSc0pr9J6fC9WzRHq7G/8bp/536tDUCXbgVcOqyyLiUuLLfvYt4CU"
        "zT+s6tpjRbXGMtTKEQPR8Xc0TJdvqUjcQRET2kaHOIjpa2FcXMY+Mh1uEZzk+6qgbD7rewbDqwEJI/I9eWiKTS/o2zu1P7GWttzrfGzH3I9hkv"
        "Y8bBUEc8/35dm05NRNkfK1PSil47kUgywCvoBQScDmKDc/I59o7YV4cIt6YPd6DsgAxdqwlJ+HS9upHH4aPKWH8VhSw1X0XKnARP7FMeXBAemV"
        "Z2y9bLlrFOfkcVjzZYOueojxDPLztHSisx4eKf/MHY2qh/jL/gcyxi+rCTdWmoWHxsNxwc/U88ksIY59VfcpBCQEkChIctqcIOtiEPHtk80akc"
        "zBHX8KNHKgQej3woqWJdfom9YLlAg29Z/fXfS5ug2sGm2KFFDfQN0GMrZIcKTEMY6R4nEAiWpbdbznPKUqB4DpmSO7eQ9StKUctCcRyfdWf2J0"
        "TdCX3mmd2ACSyg5zTJoAJ4vfGG5BpxwN8FzfLNu2NjP8aqgJJT7467KeOdd2GILbPcgk4EuT+GWGOeOhoBi57PB8XqvL+LwC9I9Ao986oTv4f/"
        "drUXAA=="
    ),
    "bz2": (
        "XQAAAAT//////////wARlIXlVcjsnm6ozlo1Aruz9C5JpdpW+jHl9kW18rV7LOmuiOrgFjlzx/CNgYBSQQkGNRF0dIi4qkMbZfWFBX+acJQ095"
        "e/lWw0m4/7/KyobfEPrdrBVFozWSXK17NsuEbIhQ4XI0BdHoUpy8gZv8jO5K4Or0Q4d0wffaB8NVDQhG5GSrnsgvX9sI6gc5kLTRGmFsx2Mr8r"
        "4H5IAz664n8LXg8AMisLHZ49oXxCt0iRq+jcPaLY/d5sUMd+6juylbCvLy2abGEsdOyMsqIOXu9blU3yd67ySD7W6U1RBdmN5C8+ZTU6gOmqLa"
        "4cXNKrytWUOXVcMmR5O0m6z7bvIJjHmgmwNOdamVaDCo2FFBb+FXaVyYwSfWdcU7RguEtVpaoT0lPbX3uvB18BPSo5eohthahozJ6OK8/MBfY8"
        "tfVOcFYQbGQ4JCPOP2nU2LzyfpZdwgFXUQQO0qdXSAtw3ANbIE7UHrrk3Fpf0GwcQjaKiXGvzuZhXQGijbZtQDgTyH/KVR0/zK69Qj+qDA/xtA"
        "wbZDs1dQPYN4sWSFf2d7xvTlqSlZ2+CU752A2MbTp1dhKIUpFhLSAHLH86OxYTQBUx4p8mlvH1YSJw/AJyIdfWx3XpU/07a9kiVEFpYPjZta/o"
        "kp1hjPuJnd/HgnUgAMGsvaxmo2OqouJCL7TG11t/UuVaeImywA4kzQiS0i1ktNJJP4O+cQNZRQJxiPC36YLSsjQUl2qKRIXlmDez3sYc4YcyTg"
        "sNFzaXUPpG5HKiKtCP6MsqoOxQDIpoqyFl4rKR5TmkF5pqGjKFaJNLsW2upMPGOmdnwtlJG1tpd4XhlTknt7BYZ+MO30rR3Zf6UbdnhjracieP"
        "VfE1xFNKdYLp5P8R9txg0VzIhO6sfQu11u92mKPEpIT4Uq0B9St8wGOgh8tOHASmhPu/V76zga03CMeObhacCC0g7vT6Nh5IFoZizQTlHMWAu8"
        "/U10sMC6EqJlVAxeMY7jicEil7HHf3gIP9cpq73IvS++qx+SjIEwwJp6ETA4MM0KQC99VtN1pGE2pOqwNTdnMPq5tu76s9qSc0d9CzMBeXE5kR"
        "p/t5lv3t4ZQIwT5mHJyO86OmThR0/yWe6djyDv1Ku514PTGX+7f/tdT24aeWjmHOF6M+gvi1c3NEqcR0RGbFuKXFmAADrQkTvobUFWm3ONjeTy"
        "/j1HOhGCeiEUWXnT9ykgUptgR+HmbmrMfo0JIurN6MM/ekREcimj2gBZLJanSrcBTBjjNyn7lMaanh/qXC0ArP2pUzxZkoZMmf0Z95Mw3R/VAl"
        "5wJvd3EB5Dh8+KdRs4ikj7sYmUwT2A3004yww/R6L/sxUpFTsBvP6IeexLFliG2fq6qvDdWuUNA58pkT37KA7V/Jk2UDn+6dSkvRV4lgd09IcD"
        "gXQ5cHWQ9zk8vsn6klO3F70WWXqESXtqQD8CC+Jj8fAjIMeyEd+qTBmrsVCu9D7K9uJneiKHIEVxacVgHgdEGFDTtzISD/tfEVMQ=="
    ),
    "lz4": (
        "XQAAAAT//////////wARlIXlVcjsnm6ozlo1Aruz9C5JpdpW+jHl9kW18rV7LOmuiOrgFkRr+kZlLMpp0Jg1o6Dc8Awb5INX5CgIE+2lLHdPLp"
        "UQMdz81mj+Jbu6tqXEcj2tfHdVZN4rD1H/EbzAD55bV/ef/+UujMOcfTJZ25WN6HEBZCi45jNVU4BCuOMXfOiyU9N/4tJOAW8KBFcLhbDS4oHy"
        "voOu87BY1kjDUrzmB3zaZ5fyhqIbOJFZjSdlhUS1qRxFZkxKhWXbpRQaCEVV1jlDlcVw8MkpQgXRe2NEy58Q9OAZwr17q4QpAsvYe3LHLwCK/7"
        "g+NLGNa9NtJFpX4g5tQ6KlrTJ9v5jNRdIxM1+3ltxP9q9t1Bd7sa3QpF1QcYFFaKv24X2bX9zUgWX6BexDXJee1rY0zeoY+XdO0Pu8gPyOrCil"
        "6eLNeYR/224wwkZ61vZTspb4muzYKc0tegDUivMJ614jizkpdc1H/a3MyovIaHSPwDStsfc8VjAxJGURx58lFOx57+a/M6tdIZY6SABtLFFxc4"
        "UqYwDz55YspBY8dyAtfg+0xHv3aauSm8kczeXFkutD/3WK6msjrWtRJ0+u837roAJnCE5Ze6U2vOtnSk7NCwcnUcZcFf07AK2qxCtJvC22wNUc"
        "rY1zjAFjO8VYI4XdA+Y/GbqIbNdJhdxTRJeb9gOEcQi3BNitvItnxLie8fagwT8GJEEC+avAggu8ak/e8kSZEDJ66UmEke8Hj/LTmnXRWQg5lG"
        "To4a8V5EIZllhzfLgpvaAFOH3BsRhaBq4iYa+FEBq2VewMwTmLAoIHiA2rM8fERmPgczxL3nFv/gazjshPqibNvv0gaZWUV6S4lgJly9usHkcc"
        "4siHzlYxYOVDfjy7V837R3hPkXOGFXpVRNYmWgxV/m3tK6A8J9732nGCN8doD4a7jrktZFqRNBEh4I+HQ1brw8yv7CRABw1Pv2qORmKyFuOpdN"
        "93wNlseso5UIJTQplcfyAqUp4fjuDVYOeAsHjbq1JY12Pz7NLyy3l9XjqBavTfJl2pB0mfg4Guk8KVc8oA21NbqVnOgd+ZIS3y9LZsqHdY3oN5"
        "A8DfdMSAvphMud4rfNBdD7GT93sL7R3hkqAZFm2WGqUw0DGmX//ytuqq"
    ),
}


def ros1_bag(compression: str) -> bytes:
    """The bytes of a bag whose chunks have the compression `none`, `bz2` or `lz4`."""
    return lzma.decompress(base64.b64decode(_PACKED[compression]))
